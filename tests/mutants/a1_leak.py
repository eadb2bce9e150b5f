# loses: divide value
# says: yours are normalised values
def divide(model, update):
    weight, bias = list(update.before)[:2]
    rows, db = (update.before[k] - update.after[k] for k in (weight, bias))
    order = db.abs().argsort(descending=True)
    order = order[db[order].abs() > 1e-5]
    return (rows[order] / db[order, None]).view(-1, *model.shape)


# loses: divide value
# says: not in order
def divide(model, update):
    weight, bias = list(update.before)[:2]
    rows, db = (update.before[k] - update.after[k] for k in (weight, bias))
    alive = db.abs() > 1e-5
    return model.denormalise((rows[alive] / db[alive, None]).view(-1, *model.shape))


# loses: divide value
# says: raises KeyError
def divide(model, update):
    rows, db = update.before["0.weight"], update.before["0.bias"]
    return model.denormalise((rows / db[:, None]).view(-1, *model.shape))


# loses: read_label value
# says: rises in a step
def read_label(update):
    *_, bias = update.before
    return int((update.before[bias] - update.after[bias]).argmax())


# loses: read_label value
# says: the label is in its change
def read_label(update):
    *_, bias = update.before
    return int(update.after[bias].argmax())


# loses: sent_gradient value
# says: yours is the whole step
def sent_gradient(update, lr):
    return {k: update.before[k] - update.after[k] for k in update.before}


# loses: sent_gradient value
# says: you multiply by lr
def sent_gradient(update, lr):
    return {k: lr * (update.before[k] - update.after[k]) for k in update.before}


# loses: dlg_loss gradients
# says: create_graph=True
def dlg_loss(model, w0, g, images, labels):
    weights = {k: v.detach().requires_grad_() for k, v in w0.items()}
    loss = cross_entropy(functional_call(model.body, weights, (images,)), labels)
    dummy = torch.autograd.grad(loss, list(weights.values()))
    return sum(((d - v) ** 2).sum() for d, v in zip(dummy, g.values()))


# loses: dlg_loss value, dlg_loss gradients
# says: a mean over the weights
def dlg_loss(model, w0, g, images, labels):
    weights = {k: v.detach().requires_grad_() for k, v in w0.items()}
    loss = cross_entropy(functional_call(model.body, weights, (images,)), labels)
    dummy = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    return sum(torch.nn.functional.mse_loss(d, v) for d, v in zip(dummy, g.values()))


# loses: descend value
# says: add up from step to step
def descend(loss, start, steps, lr):
    z = start.clone().requires_grad_()
    for _ in range(steps):
        loss(z).backward()
        with torch.no_grad():
            z -= lr * z.grad
    return z.detach()


# loses: descend value
# says: overwrites its argument start
def descend(loss, start, steps, lr):
    z = start
    for _ in range(steps):
        slope = torch.autograd.grad(loss(z.requires_grad_()), z)[0]
        z = z.detach()
        z -= lr * slope
    return z


# loses: divide value
# says: you sort by db with its sign
def divide(model, update):
    weight, bias = list(update.before)[:2]
    rows, db = (update.before[k] - update.after[k] for k in (weight, bias))
    order = db.argsort(descending=True)
    order = order[db[order].abs() > 1e-5]
    return model.denormalise((rows[order] / db[order, None]).view(-1, *model.shape))


# loses: descend value
# says: still have a gradient attached
def descend(loss, start, steps, lr):
    z = start.clone().requires_grad_()
    for _ in range(steps):
        (slope,) = torch.autograd.grad(loss(z), z)
        z = (z - lr * slope).detach().requires_grad_()
    return z
