/* What the slider does when it moves: `this` is the slider. It stands in its `oninput`, and not in
   a script element, because a page may show several players and a notebook runs scripts anywhere. */
const player = this.closest(".smelib-player");
const frames = player.querySelectorAll("img");
frames.forEach((frame, i) => { frame.hidden = i != this.value; });
player.querySelector("output").textContent = "step " + frames[this.value].dataset.step;
