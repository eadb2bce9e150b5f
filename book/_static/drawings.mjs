/* Small drawings made by code, and the pen that makes them: 1 is ink and 0 is paper. */

export const SIDE = 28;
const PEN = 1.05; // the pen's radius in pixels

/** Draw a line from `a` to `b`, in pixels, into `picture`; ink adds up to black at most. */
export function line(picture, a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = dx * dx + dy * dy;
  const within = (low, high) => [
    Math.max(0, Math.floor(Math.min(low, high) - PEN - 1)),
    Math.min(SIDE - 1, Math.ceil(Math.max(low, high) + PEN + 1)),
  ];
  const [left, right] = within(a[0], b[0]);
  const [top, bottom] = within(a[1], b[1]);
  for (let y = top; y <= bottom; y += 1) {
    for (let x = left; x <= right; x += 1) {
      const [px, py] = [x + 0.5 - a[0], y + 0.5 - a[1]];
      const t = length ? Math.min(1, Math.max(0, (px * dx + py * dy) / length)) : 0;
      const ink = Math.min(1, Math.max(0, PEN + 0.5 - Math.hypot(px - t * dx, py - t * dy)));
      picture[y * SIDE + x] = Math.max(picture[y * SIDE + x], ink);
    }
  }
}

/** Points of an ellipse, or of a part of it, in hundredths of the picture's side. */
function arc(x, y, rx, ry = rx, from = 0, to = 360) {
  return Array.from({ length: 25 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / 24) * Math.PI) / 180;
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)];
  });
}

/** Each drawing is a list of strokes, each stroke a list of points in hundredths. */
const STROKES = {
  "a face": [arc(50, 50, 38), arc(36, 40, 3), arc(64, 40, 3), arc(50, 54, 20, 17, 20, 160)],
  "a house": [
    [[18, 48], [50, 16], [82, 48], [18, 48]],
    [[24, 48], [24, 86], [76, 86], [76, 48]],
    [[44, 86], [44, 64], [58, 64], [58, 86]],
  ],
  "a seven": [[[24, 20], [76, 20], [44, 86]], [[36, 52], [68, 52]]],
  "a fish": [
    arc(42, 50, 28, 18), [[68, 44], [88, 30], [88, 70], [68, 56]], arc(28, 45, 2),
  ],
  "a tree": [[[50, 90], [50, 62]], [[50, 10], [22, 62], [78, 62], [50, 10]]],
  "a heart": [[
    [50, 84], [16, 46], [16, 30], [26, 20], [38, 20], [50, 34],
    [62, 20], [74, 20], [84, 30], [84, 46], [50, 84],
  ]],
  "a boat": [
    [[12, 62], [88, 62], [72, 84], [28, 84], [12, 62]], [[48, 62], [48, 12], [80, 52], [48, 52]],
  ],
  "a star": [[[50, 10], [74, 86], [12, 38], [88, 38], [26, 86], [50, 10]]],
  "a three": [[...arc(46, 34, 20, 16, -150, 80), ...arc(46, 67, 24, 18, -80, 150)]],
  "a cup": [[[22, 26], [28, 84], [64, 84], [70, 26], [22, 26]], arc(72, 50, 14, 14, -90, 90)],
  "a sun": [
    arc(50, 50, 18),
    ...[0, 45, 90, 135, 180, 225, 270, 315].map((degrees) => {
      const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
      return [[50 + 27 * c, 50 + 27 * s], [50 + 40 * c, 50 + 40 * s]];
    }),
  ],
  "a key": [arc(28, 50, 16), [[44, 50], [88, 50], [88, 66]], [[74, 50], [74, 62]]],
  "an eight": [arc(50, 32, 17), arc(50, 67, 21, 18)],
  "a bolt": [[[60, 8], [28, 54], [50, 54], [38, 92], [74, 42], [52, 42], [60, 8]]],
  "an envelope": [[[14, 26], [86, 26], [86, 76], [14, 76], [14, 26], [50, 54], [86, 26]]],
  "a flag": [[[26, 90], [26, 12], [80, 24], [26, 48]]],
};

export const NAMES = Object.keys(STROKES);

/** A drawing of the list as a picture of SIDE by SIDE numbers. */
export function drawing(name) {
  const picture = new Float64Array(SIDE * SIDE);
  const place = ([x, y]) => [(x * SIDE) / 100, (y * SIDE) / 100];
  for (const stroke of STROKES[name]) {
    for (let i = 1; i < stroke.length; i += 1) {
      line(picture, place(stroke[i - 1]), place(stroke[i]));
    }
  }
  return picture;
}
