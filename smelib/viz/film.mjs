/* A filmstrip: pictures beside their originals, curves with a moving cursor, one slider.

   `film.py` puts this file into the `onload` of the contact sheet, because that runs wherever a
   notebook's HTML is alive (a rendered page, JupyterLab, Colab, VS Code) and nowhere else. The
   contact sheet stays in the document; a shadow root takes its place on the screen, so that neither
   names nor styles meet those of the page or of another filmstrip. */

/** The frame whose place on the axis is nearest to `at`. */
export function nearest(frames, at) {
  let best = 0;
  frames.forEach((frame, i) => {
    if (Math.abs(frame.at - at) < Math.abs(frames[best].at - at)) best = i;
  });
  return best;
}

/** How long a frame stays, so that the whole film takes about six seconds. */
export function pace(count) {
  return Math.min(700, Math.max(80, 6000 / count));
}

/** An element with attributes and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** One line of pictures; the returned function shows a line of the sheet in it. */
function pictures(film, sheet, parent, label, colour) {
  const [width, height] = film.size;
  const gap = 2;
  const strip = make("canvas", { role: "img", "aria-label": label });
  strip.width = film.count * (width + gap) - gap;
  strip.height = height;
  strip.style.maxWidth = `${film.count * 76}px`;
  const name = make("span", { class: "name" }, label);
  if (colour) name.style.setProperty("--c", colour);
  parent.append(make("div", { class: "line" }, name, strip));
  const pen = strip.getContext("2d");
  return (line) => {
    for (let i = 0; i < film.count; i += 1) {
      pen.drawImage(
        sheet, i * width, line * height, width, height, i * (width + gap), 0, width, height,
      );
    }
  };
}

/** One panel of curves; the returned function moves its cursor to a frame. */
function chart(film, panel, parent, goTo) {
  const svg = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const drawing = svg("svg", {
    viewBox: "0 0 1000 1000", preserveAspectRatio: "none", "aria-hidden": "true",
  });
  const plot = make("div", { class: "plot" }, drawing);
  const legend = make("div", { class: "legend" }, make("span", { class: "unit" }, panel.unit));
  for (const [at, text] of panel.ticks) {
    drawing.append(svg("path", { class: "rule", d: `M0 ${1000 - at}H1000` }));
    const mark = make("span", { class: "y" }, text);
    mark.style.bottom = `${at / 10}%`;
    plot.append(mark);
  }
  for (const [at, text] of film.ticks) {
    const mark = make("span", { class: "x" }, text);
    mark.style.left = `${at / 10}%`;
    plot.append(mark);
  }
  const cursor = make("div", { class: "cursor" });
  plot.append(cursor);
  const moving = panel.curves.map((curve) => {
    const line = curve.line.map(([x, y]) => `${x} ${1000 - y}`).join("L");
    const path = svg("path", { class: "curve", d: `M${line}` });
    const dot = make("div", { class: "dot" });
    const value = make("b");
    const entry = make("span", { class: "entry" }, make("i"), `${curve.name} `, value);
    for (const part of [path, dot, entry]) part.style.setProperty("--c", curve.colour);
    drawing.append(path);
    plot.append(dot);
    legend.append(entry);
    return (i) => {
      dot.style.left = `${film.frames[i].at / 10}%`;
      dot.style.bottom = `${curve.dots[i] / 10}%`;
      value.textContent = curve.texts[i];
    };
  });
  const drag = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = plot.getBoundingClientRect();
    goTo(nearest(film.frames, (1000 * (event.clientX - box.left)) / box.width));
  };
  plot.addEventListener("pointerdown", (event) => {
    plot.setPointerCapture(event.pointerId);
    drag(event);
  });
  plot.addEventListener("pointermove", drag);
  parent.append(make("div", { class: "panel" }, legend, plot));
  return (i) => {
    cursor.style.left = `${film.frames[i].at / 10}%`;
    moving.forEach((move) => move(i));
  };
}

/** The slider with its play button and its label; returns what the film needs of them. */
function controls(film, parent, show) {
  const last = film.frames.length - 1;
  const button = make("button", { type: "button" });
  const slider = make("input", {
    type: "range", min: 0, max: last, step: 1, "aria-label": film.axis,
  });
  const label = make("output");
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.className = "";
    button.setAttribute("aria-label", "Play");
  };
  const goTo = (i) => {
    slider.value = i;
    const { label: text, say } = film.frames[i];
    slider.setAttribute("aria-valuetext", `${film.axis} ${text}${say ? `: ${say}` : ""}`);
    label.textContent = `${film.axis} ${text}`;
    show(i);
  };
  const play = () => {
    if (Number(slider.value) === last) goTo(0);
    button.className = "on";
    button.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      if (!slider.isConnected) return stop();
      goTo(Math.min(Number(slider.value) + 1, last));
      if (Number(slider.value) === last) stop();
      return undefined;
    }, pace(film.frames.length));
  };
  button.addEventListener("click", () => (timer ? stop() : play()));
  slider.addEventListener("input", () => {
    stop();
    goTo(Number(slider.value));
  });
  stop();
  if (last > 0) parent.append(make("div", { class: "controls" }, button, slider, label));
  else parent.append(label);
  return { goTo, play, stop };
}

/** Start the film when it comes into view, unless the reader asked for stillness. */
function playWhenSeen(host, play) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    play();
  }, { threshold: 0.6 });
  watch.observe(host);
}

/** Keys are the film's while it has the focus: on an arrow, a notebook would go to another cell.
    JupyterLab listens before any element does and looks for an attribute; VS Code listens last.
    With Control, Alt, Shift or Command a key is the notebook's, so that it still saves and runs. */
function keepKeys(host, live) {
  const mark = "data-lm-suppress-shortcuts";
  const listen = (event) => {
    const own = !(event.ctrlKey || event.altKey || event.shiftKey || event.metaKey);
    host.toggleAttribute(mark, own);
    if (own) event.stopPropagation();
  };
  host.setAttribute(mark, "");
  live.addEventListener("keydown", listen);
  live.addEventListener("keyup", listen);
}

/** Turn a contact sheet, `picture`, into the film that it carries. */
export function filmstrip(picture, css) {
  const host = picture.parentElement;
  if (!host || host.shadowRoot || !picture.dataset.film) return;
  const film = JSON.parse(picture.dataset.film);
  const sheet = new Image();
  sheet.onload = () => {
    if (host.shadowRoot) return;
    const style = make("style");
    style.textContent = css;
    const live = make("div", { class: "film", role: "group" });
    live.setAttribute("aria-label", film.title || `Pictures by ${film.axis}`);
    if (film.title) live.append(make("p", { class: "title" }, film.title));
    const lines = make("div", { class: "lines" });
    const charts = make("div", { class: "charts" });
    live.append(lines);
    const count = film.frames.length;
    if (film.originals) {
      pictures(film, sheet, lines, "original", "")(film.rows.length * count);
    }
    const moving = film.rows.map((row, k) => {
      const show = pictures(film, sheet, lines, row.name, row.colour);
      return (i) => show(k * count + i);
    });
    const strip = controls(film, live, (i) => moving.forEach((move) => move(i)));
    const drag = (i) => {
      strip.stop();
      strip.goTo(i);
    };
    moving.push(...film.panels.map((panel) => chart(film, panel, charts, drag)));
    if (film.panels.length) live.append(charts);
    host.attachShadow({ mode: "open" }).append(style, live, make("slot"));
    keepKeys(host, live);
    strip.goTo(film.start);
    if (film.autoplay) playWhenSeen(host, strip.play);
  };
  sheet.src = film.sheet;
}
