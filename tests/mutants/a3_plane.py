# loses: my_walk value
# says: your walk lacks w0
def my_walk(gradient, w0, lr, steps):
    path = []
    for _ in range(steps):
        w0 = w0 - lr * gradient(w0)
        path.append(w0)
    return np.array(path)


# loses: my_walk value
# says: overwrites its argument w0
def my_walk(gradient, w0, lr, steps):
    path = [w0.copy()]
    for _ in range(steps):
        w0 -= lr * gradient(w0)
        path.append(w0.copy())
    return np.array(path)


# loses: my_cosine value
# says: the update is w0 - end
def my_cosine(gradient, w0, end, alpha):
    d, g = end - w0, gradient(w0 + alpha * (end - w0))
    return d @ g / np.sqrt((d @ d) * (g @ g))


# loses: my_cosine value
# says: you divide by squared lengths
def my_cosine(gradient, w0, end, alpha):
    d, g = w0 - end, gradient(w0 + alpha * (end - w0))
    return d @ g / ((d @ d) * (g @ g))


# loses: my_root value
# says: from the other end
def my_root(gradient, w0, end):
    d, low, high = w0 - end, 0.0, 1.0

    def side(a):
        g = gradient(end + a * (w0 - end))
        return d[0] * g[1] - d[1] * g[0] > 0

    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if side(middle) == side(0.0) else (low, middle)
    return low


# loses: my_root value
# says: return its place alpha
def my_root(gradient, w0, end):
    d, low, high = w0 - end, 0.0, 1.0

    def side(a):
        g = gradient(w0 + a * (end - w0))
        return d[0] * g[1] - d[1] * g[0] > 0

    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if side(middle) == side(0.0) else (low, middle)
    return w0 + low * (end - w0)


# loses: my_root value
# says: smelib.theory is closed here
def my_root(gradient, w0, end):
    return theory.parallel_points(gradient, w0, end)[0]


# loses: my_condition value
# says: yours is the mean
def my_condition(gradient, path):
    d, g = path[0] - path[-1], gradient(path)
    return (g @ d / np.sqrt((g * g).sum(1) * (d @ d))).mean()


# loses: my_condition value
# says: divide by both lengths
def my_condition(gradient, path):
    return min(gradient(w) @ (path[0] - path[-1]) for w in path)


# loses: counter_example walk
# says: it should end at -3
def counter_example():
    from scipy.interpolate import CubicSpline

    x = np.array([0.6, 0, -0.5, -2, -5, -7, -7.2, -6, -4.8, -4.1, -3.8]) / 2
    y = np.array([-1, 0, 1.5, 3.5, 3.6, 2.0, -1, -2.4, -1.6, 0, 1.2]) / 2
    points = CubicSpline(np.arange(11), np.stack([x, y], -1))(np.linspace(0, 10, 100))
    return points, 0.12, 0.25, 9.5


# loses: counter_example walk, counter_example condition, counter_example segment
# says: this is chapter 5's own walk
def counter_example():
    from scipy.interpolate import CubicSpline

    x = [-0.35, 0, 0.4, 2, 4, 4.3, 3.4, 2.5, 2.1, 1.8]
    y = [-0.9, 0, 1.3, 2.3, 1.6, -0.4, -1.6, -1, 0, 0.7]
    points = CubicSpline(np.arange(10), np.stack([x, y], -1))(np.linspace(0, 9, 80))
    return points * [-2, 2], 0.1, 0.6, 4 * 23.82


# loses: counter_example condition, counter_example segment
# says: parallel
def counter_example():
    points = np.stack([np.linspace(0, -8, 100), 0.5 * np.sin(np.linspace(0, 5, 100))], axis=-1)
    return points, 0.1, 0.3, 4.0


# loses: counter_example condition, counter_example segment
# says: parallel
def counter_example():
    return np.linspace([0, 0], [-8, 1], 100), 0.1, 0.3, 4.0


# loses: counter_example walk, counter_example condition, counter_example segment
# says: come to rest
def counter_example():
    from scipy.interpolate import CubicSpline

    knots = np.array([(1, -1), (0, 0), (-2, 1), (-4, 0), (-5, -1)], float)
    points = CubicSpline(np.arange(5), knots)(np.linspace(0, 4, 100))
    return points, 0.1, 0.3, 30
