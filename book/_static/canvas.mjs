/* What the playgrounds share: a pen, hands that drag, keys that move, and the page's colours. */

/** A pen for a canvas: lines, dots and arrows, in pixels of the canvas. */
export function pen(canvas, root) {
  const context = canvas.getContext("2d");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const stroke = (points, style, width = 3, dash = []) => {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    Object.assign(context, { strokeStyle: style, lineWidth: width });
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  };
  const dot = ([x, y], fill, radius = 8) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    Object.assign(context, { fillStyle: fill, strokeStyle: colour("--line"), lineWidth: 2 });
    context.fill();
    context.stroke();
  };
  const arrow = (foot, tip, style, width = 4, head = 15) => {
    const [dx, dy] = [tip[0] - foot[0], tip[1] - foot[1]];
    const size = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [(head * dx) / size, (head * dy) / size];
    stroke([foot, tip], style, width);
    for (const side of [-1, 1]) {
      stroke([tip, [tip[0] - ux + side * 0.6 * uy, tip[1] - uy - side * 0.6 * ux]], style, width);
    }
  };
  const write = (text, [x, y], style, size = 22, align = "left") => {
    const grown = within(canvas.width / canvas.clientWidth / 1.6, 1, 1.2); // on a phone, to be read
    Object.assign(context, {
      font: `${size * grown}px ${getComputedStyle(root).fontFamily}`, fillStyle: style, textAlign: align,
    });
    context.fillText(text, x, y);
  };
  const clear = () => context.clearRect(0, 0, canvas.width, canvas.height);
  return { context, colour, stroke, dot, arrow, write, clear };
}

/** Call `act` with the pointer's place on a canvas, each side from 0 to 1, while it is down. */
export function hold(canvas, act) {
  const shares = (event) => {
    const box = canvas.getBoundingClientRect();
    act((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    shares(event);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && shares(event));
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** Call `act` with the direction of an arrow key, up being positive. */
export function keys(canvas, act) {
  canvas.addEventListener("keydown", (event) => {
    const step = MOVES[event.key];
    if (!step) return;
    event.preventDefault();
    act(...step);
  });
}

export const within = (value, low, high) => Math.min(high, Math.max(low, value));

/** Let dragging and the arrow keys turn what is drawn: `state` has `yaw` and `pitch`. Returns the turn. */
export function orbit(canvas, state, renew) {
  const turn = (yaw, pitch) => {
    Object.assign(state, { yaw, pitch: within(pitch, -Math.PI / 2, Math.PI / 2) });
    renew();
  };
  let last = null;
  canvas.addEventListener("pointerdown", () => {
    last = null;
  });
  hold(canvas, (a, b) => {
    if (last) turn(state.yaw + 4 * (a - last[0]), state.pitch + 3 * (b - last[1]));
    last = [a, b];
  });
  keys(canvas, (x, y) => turn(state.yaw + 0.15 * x, state.pitch + 0.1 * y));
  return turn;
}

/** A function that draws at most once a frame, and again when the page turns light or dark. */
export function animated(draw) {
  let wanted = false;
  const soon = () => {
    if (!wanted) {
      requestAnimationFrame(() => {
        wanted = false;
        draw();
      });
    }
    wanted = true;
  };
  new MutationObserver(soon).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return soon;
}

/** Bring every playground of a kind on the page to life. */
export function everywhere(selector, start) {
  if (typeof document === "undefined") return;
  for (const root of document.querySelectorAll(selector)) {
    start(root, (name) => root.querySelector(`[data-part="${name}"]`));
    root.dataset.ready = "yes";
  }
}
