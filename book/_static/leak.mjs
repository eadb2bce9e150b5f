/* Chapter 2's exact leak, in plain numbers: a network with one hidden layer, one training step of a
   client, and the division by which a server gets the client's picture back. */

/** A stream of numbers in [0, 1) from a seed: mulberry32. */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A stream of normal numbers, by Box and Muller. */
export function normal(seed) {
  const draw = uniform(seed);
  return () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
}

/** A linear layer, ReLU, a linear layer, with PyTorch's default first weights. */
export function network(inputs, hidden, classes, seed) {
  const draw = uniform(seed);
  const fill = (length, fanIn) =>
    Float64Array.from({ length }, () => (2 * draw() - 1) / Math.sqrt(fanIn));
  return {
    W1: fill(hidden * inputs, inputs),
    b1: fill(hidden, inputs),
    W2: fill(classes * hidden, hidden),
    b2: fill(classes, hidden),
  };
}

/** Where `x` is not zero: a drawing is mostly paper, which adds nothing to any sum. */
function inked(x) {
  const places = [];
  for (let j = 0; j < x.length; j += 1) if (x[j]) places.push(j);
  return places;
}

/** W x + b, over the places where x is not zero. */
function linear(W, b, x, places) {
  return b.map((bias, i) => {
    let sum = bias;
    const start = i * x.length;
    for (const j of places) sum += W[start + j] * x[j];
    return sum;
  });
}

/** Which hidden units an image passes. */
export function active(net, x) {
  return Array.from(linear(net.W1, net.b1, x, inked(x)), (value) => value > 0);
}

/** The gradient of the mean cross-entropy over a batch, with the names of the weights. */
export function gradient(net, images, labels) {
  const sum = {};
  for (const [name, values] of Object.entries(net)) sum[name] = new Float64Array(values.length);
  images.forEach((x, n) => {
    const places = inked(x);
    const a = linear(net.W1, net.b1, x, places);
    const h = a.map((value) => Math.max(value, 0));
    const s = linear(net.W2, net.b2, h, inked(h));
    const top = Math.max(...s);
    const p = s.map((value) => Math.exp(value - top));
    const total = p.reduce((left, right) => left + right);
    const slope = p.map((value, k) => (value / total - (k === labels[n] ? 1 : 0)) / images.length);
    // delta_i = (a_i > 0) * sum_k W2_ki slope_k, and the gradient of W1's row i is delta_i x
    for (let i = 0; i < h.length; i += 1) {
      let delta = 0;
      for (let k = 0; k < slope.length; k += 1) {
        delta += net.W2[k * h.length + i] * slope[k];
        sum.W2[k * h.length + i] += slope[k] * h[i];
      }
      if (a[i] <= 0) continue;
      sum.b1[i] += delta;
      for (const j of places) sum.W1[i * x.length + j] += delta * x[j];
    }
    slope.forEach((value, k) => {
      sum.b2[k] += value;
    });
  });
  return sum;
}

/** The weights after one step of gradient descent: what the client sends. */
export function train(net, images, labels, lr) {
  const slope = gradient(net, images, labels);
  const after = {};
  for (const name of Object.keys(net)) after[name] = net[name].map((w, i) => w - lr * slope[name][i]);
  return after;
}

/** What the server sees of the first layer: how its weights and its bias have changed. */
export function change(before, after) {
  return {
    dW: before.W1.map((w, i) => w - after.W1[i]),
    db: before.b1.map((b, i) => b - after.b1[i]),
  };
}

/** The same with Gaussian noise, `ratio` times as large as a typical number of the change. */
export function noisy({ dW, db }, ratio, seed) {
  if (!ratio) return { dW, db };
  const draw = normal(seed);
  let squares = 0;
  for (const v of dW) squares += v * v;
  for (const v of db) squares += v * v;
  const size = ratio * Math.sqrt(squares / (dW.length + db.length));
  return { dW: dW.map((v) => v + size * draw()), db: db.map((v) => v + size * draw()) };
}

/** Each row of the weights' change over the bias's; null for a unit that says nothing. */
export function divide({ dW, db }) {
  const inputs = dW.length / db.length;
  return Array.from(db, (bias, i) =>
    Math.abs(bias) < 1e-12 ? null : dW.slice(i * inputs, (i + 1) * inputs).map((v) => v / bias),
  );
}

/** The unit whose bias has changed most. */
export function strongest(db) {
  let best = 0;
  db.forEach((value, i) => {
    if (Math.abs(value) > Math.abs(db[best])) best = i;
  });
  return best;
}

/** The cosine of the angle between two vectors. */
export function cosine(a, b) {
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((value, i) => {
    ab += value * b[i];
    aa += value * value;
    bb += b[i] * b[i];
  });
  return ab / Math.sqrt(aa * bb);
}

/** Peak signal-to-noise ratio in decibels, of pictures in [0, 1]; what lies outside is clipped. */
export function psnr(found, truth) {
  let squares = 0;
  for (let j = 0; j < truth.length; j += 1) {
    squares += (Math.min(1, Math.max(0, found[j])) - truth[j]) ** 2;
  }
  return -10 * Math.log10(squares / truth.length);
}

/** Whether a picture comes within so many decibels of the truth; it stops looking once it cannot. */
export function shows(found, truth, decibels) {
  let left = truth.length * 10 ** (-decibels / 10);
  for (let j = 0; j < truth.length && left > 0; j += 1) {
    left -= (Math.min(1, Math.max(0, found[j])) - truth[j]) ** 2;
  }
  return left > 0;
}
