"""The paper's tables as jobs that run anywhere, and the scoreboard of what they gave."""
