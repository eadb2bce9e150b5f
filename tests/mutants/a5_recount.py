# loses: confidence value
# says: few clients need Student's
def confidence(values):
    from scipy.stats import norm

    half = norm.ppf(0.975) * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values), half


# loses: confidence value
# says: ddof=1
def confidence(values):
    n = len(values)
    return np.mean(values), t.ppf(0.975, n - 1) * np.std(values) / np.sqrt(n)


# loses: apart value
# says: add as squares
def apart(ours, theirs):
    d, h = ours[0] - theirs[0], ours[1] + theirs[1]
    return d - h, d + h


# loses: apart value
# says: theirs minus ours
def apart(ours, theirs):
    d, h = theirs[0] - ours[0], np.hypot(ours[1], theirs[1])
    return d - h, d + h


# loses: verdict value
# says: you call equal what is not shown to differ
def verdict(low, high, limit):
    return np.where((low > limit) | (high < -limit), -1, 1)


# loses: verdict value
# says: you test against zero
def verdict(low, high, limit):
    within, apart = (low >= -limit) & (high <= limit), (low > 0) | (high < 0)
    return np.where(within, 1, np.where(apart, -1, 0))


# loses: verdict value
# says: The truth value of an array
def verdict(low, high, limit):
    if low >= -limit and high <= limit:
        return 1
    return -1 if low > limit or high < -limit else 0


# loses: gain value
# says: take differences first
def gain(sme, ig):
    return apart(confidence(sme), confidence(ig))


# loses: recount value
# says: you leave out the cells with one client
def recount(cells, limit, runs):
    counts = {"equal": 0, "different": 0, "undecided": 0}
    for values, mean, error in cells:
        if len(values) > 1:
            low, high = apart(confidence(values), (mean, t.ppf(0.975, runs - 1) * error))
            said = int(verdict(np.array(low), np.array(high), limit))
            counts[["undecided", "equal", "different"][said]] += 1
    return counts


# loses: recount value
# says: the intervals decide
def recount(cells, limit, runs):
    near = sum(abs(np.mean(v) - m) <= limit for v, m, _ in cells)
    return {"equal": int(near), "different": len(cells) - int(near), "undecided": 0}
