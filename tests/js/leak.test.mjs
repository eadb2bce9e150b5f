import assert from "node:assert/strict";
import test from "node:test";
import { NAMES, SIDE, drawing } from "../../book/_static/drawings.mjs";
import { attack, verdict } from "../../book/_static/front.mjs";
import {
  change, cosine, divide, gradient, network, noisy, normal, psnr, shows, strongest, train, uniform,
} from "../../book/_static/leak.mjs";

const PIXELS = SIDE * SIDE;

/** The mean cross-entropy, written once more and differently. */
function loss(net, images, labels) {
  const layer = (W, b, x) => Array.from(b, (v, i) => x.reduce((s, xj, j) => s + W[i * x.length + j] * xj, v));
  const one = (x, label) => {
    const logits = layer(net.W2, net.b2, layer(net.W1, net.b1, Array.from(x)).map((v) => Math.max(0, v)));
    return Math.log(logits.reduce((s, v) => s + Math.exp(v), 0)) - logits[label];
  };
  return images.reduce((s, x, n) => s + one(x, labels[n]), 0) / images.length;
}

test("the gradient is that of finite differences", () => {
  const draw = uniform(3);
  const images = [0, 1, 2].map(() => Float64Array.from({ length: 6 }, draw));
  const [net, labels] = [network(6, 5, 4, 2), [3, 0, 3]];
  const slope = gradient(net, images, labels);
  for (const name of Object.keys(net)) {
    net[name].forEach((value, i) => {
      const at = (shift) => {
        const moved = { ...net, [name]: net[name].slice() };
        moved[name][i] = value + shift;
        return loss(moved, images, labels);
      };
      const expected = (at(1e-5) - at(-1e-5)) / 2e-5;
      assert.ok(Math.abs(slope[name][i] - expected) < 1e-8, `${name}[${i}]`);
    });
  }
});

test("a row over its bias is the picture, whatever the learning rate", () => {
  for (const rate of [0.01, 1]) {
    for (const name of NAMES) {
      const [net, x] = [network(PIXELS, 32, 10, 1), drawing(name)];
      const seen = change(net, train(net, [x], [4], rate));
      const row = divide(seen)[strongest(seen.db)];
      row.forEach((value, i) => assert.ok(Math.abs(value - x[i]) < 1e-9));
    }
  }
});

test("a unit that no picture switches on says nothing", () => {
  const rows = divide({ dW: Float64Array.of(1, 2, 0, 0), db: Float64Array.of(-2, 0) });
  assert.deepEqual([Array.from(rows[0]), rows[1]], [[-0.5, -1], null]);
});

test("the cosine knows parallel, opposite and right angles", () => {
  assert.ok(Math.abs(cosine([1, 2, 3], [2, 4, 6]) - 1) < 1e-15);
  assert.ok(Math.abs(cosine([1, 2], [-3, -6]) + 1) < 1e-15);
  assert.equal(cosine([1, 0], [0, 5]), 0);
  assert.ok(Math.abs(cosine([1, 0], [1, 1]) - Math.SQRT1_2) < 1e-15);
});

test("noise has the size it is told, and none changes nothing", () => {
  const seen = { dW: Float64Array.from({ length: 40000 }, normal(5)), db: new Float64Array(100) };
  assert.equal(noisy(seen, 0, 1).dW, seen.dW);
  const after = noisy(seen, 2, 1);
  let squares = 0;
  seen.dW.forEach((value, i) => {
    squares += (after.dW[i] - value) ** 2;
  });
  assert.ok(Math.abs(Math.sqrt(squares / 40000) - 2) < 0.05);
});

test("decibels are those of the mean squared error, clipped", () => {
  assert.ok(Math.abs(psnr([0.6, 0.4], [0.5, 0.5]) - 20) < 1e-9);
  assert.equal(psnr([2, -1], [1, 0]), Infinity);
  assert.deepEqual([19.9, 20.1].map((limit) => shows([0.6, 0.4], [0.5, 0.5], limit)), [true, false]);
});

test("a batch blends some units and leaves others clean; noise breaks all", () => {
  const [net, x] = [network(PIXELS, 32, 10, 1), drawing(NAMES[0])];
  const alone = attack(net, x, 1, 0);
  assert.equal(alone.clean, alone.on);
  const four = attack(net, x, 4, 0);
  assert.ok(four.clean > 0 && four.clean < four.on, `${four.clean} of ${four.on}`);
  assert.equal(attack(net, x, 1, 20).clean, 0);
  assert.match(verdict(alone, x, alone.best, 1, 0), /No pixel is off/);
  assert.match(verdict(four, x, four.best, 4, 0), /show one of the 4 pictures alone/);
  assert.match(verdict(alone, new Float64Array(PIXELS), 0, 1, 0), /empty sheet/);
});

test("every drawing is a drawing of its own", () => {
  const all = NAMES.map(drawing);
  for (const [i, x] of all.entries()) {
    assert.ok(x.every((v) => v >= 0 && v <= 1) && x.some((v) => v === 1));
    assert.ok(all.every((y, j) => i === j || cosine(x, y) < 0.8), NAMES[i]);
  }
  assert.equal(all.length, 16, "as many as the largest batch");
});
