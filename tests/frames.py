"""What a page's own thread computes for each frame, by the browser's clock of that thread."""

from __future__ import annotations

SETTLED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Meter:
    """Milliseconds of processor time per frame: tasks, scripts, layout and painting together.

    The clock runs with the page's thread, so a busy machine does not stretch it.
    """

    def __init__(self, page: object) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent(self) -> float:
        """All milliseconds so far."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def drag(self, target: object, moves: int = 30) -> list[float]:
        """Pull the mouse across a control; each move's milliseconds, to the drawn frame."""
        mouse = self.page.mouse
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
        mouse.down()
        self.page.evaluate(SETTLED)
        took, before = [], self.spent()
        for i in range(moves):
            across, down = i / (moves - 1), 0.5 + 0.3 * (i / (moves - 1) - 0.5)
            mouse.move(box["x"] + 5 + (box["width"] - 10) * across, box["y"] + box["height"] * down)
            self.page.evaluate(SETTLED)
            now = self.spent()
            took.append(now - before)
            before = now
        mouse.up()
        return took
