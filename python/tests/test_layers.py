"""cairn.nn: layers against NumPy, and layers, activations and regularizers that are written in Python."""

import gc
import weakref

import numpy as np
import pytest

import cairn
from cairn import nn


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.fixture
def strategy():
    made = cairn.OneDeviceStrategy()
    with made.scope():
        yield made
    made.close()


# ---- the layers ----


def test_dense_is_a_matrix_product(strategy):
    x = values(5, 4)
    layer = nn.Dense(3, activation="relu", bias_initializer=0.5, name="tower")
    y = layer(x).numpy()
    close(y, np.maximum(x @ layer.kernel.numpy() + 0.5, 0))
    assert [v.name for v in layer.variables] == ["tower/kernel", "tower/bias"]
    assert layer.name == "tower" and repr(layer) == '<cairn.nn.Dense "tower">'


def test_initial_values_come_by_name_object_number_value_and_function(strategy):
    fans = []

    def rule(fan_in, fan_out, seed):
        fans.append((fan_in, fan_out, seed))
        return nn.Initializer.constant(4.0)

    for given, kernel in [
        ("ones", np.ones((2, 3))),
        (2.0, np.full((2, 3), 2.0)),
        (nn.Initializer.constant(3.0), np.full((2, 3), 3.0)),
        (np.arange(6, dtype="float32").reshape(2, 3), np.arange(6).reshape(2, 3)),
        (rule, np.full((2, 3), 4.0)),
    ]:
        layer = nn.Dense(3, kernel_initializer=given, seed=7)
        layer(values(1, 2))
        close(layer.kernel.numpy(), kernel)
    assert fans == [(2, 3, 7)]
    with pytest.raises(ValueError, match="glorot_uniform"):
        nn.Dense(3, kernel_initializer="glorot_unifrm")


def test_an_activation_is_any_function(strategy):
    x = values(3, 2)
    layer = nn.Dense(2, activation=lambda y: cairn.tanh(y) * 2.0, kernel_initializer=np.eye(2, dtype="float32"))
    close(layer(x).numpy(), np.tanh(x) * 2)
    with pytest.raises(ValueError, match="did you mean"):
        nn.Dense(2, activation="rlu")
    with pytest.raises(TypeError, match="function of an array"):
        nn.Dense(2, activation=3)


def test_mlp_stacks_layers(strategy):
    x = values(4, 3)
    mlp = nn.Mlp([8, 1], seed=3)
    y = mlp(x).numpy()
    k0, b0, k1, b1 = [v.numpy() for v in mlp.variables]
    close(y, np.maximum(x @ k0 + b0, 0) @ k1 + b1)
    close(mlp.layers[0].kernel.numpy(), k0)


def test_conv2d_and_pooling(strategy):
    x = values(2, 4, 4, 1)
    conv = nn.Conv2D(1, 3, padding="same", kernel_initializer="ones", use_bias=False)
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    sums = sum(padded[:, i : i + 4, j : j + 4] for i in range(3) for j in range(3))
    close(conv(x).numpy(), sums)
    blocks = x.reshape(2, 2, 2, 2, 2, 1)
    close(nn.MaxPooling2D()(x).numpy(), blocks.max((2, 4)))
    close(nn.AveragePooling2D(pool_size=(2, 2))(x).numpy(), blocks.mean((2, 4)))
    close(nn.GlobalAveragePooling2D()(x).numpy(), x.mean((1, 2)))
    assert nn.Flatten()(x).shape == (2, 16)
    with pytest.raises(ValueError, match="padding"):
        nn.Conv2D(1, 3, padding="full")


def test_normalization_brings_mean_0_and_variance_1(strategy):
    x = values(6, 4) * 3 + 1
    y = nn.LayerNormalization(epsilon=1e-6)(x).numpy()
    close(y.mean(1), np.zeros(6))
    close(y.std(1), np.ones(6))
    layer = nn.BatchNormalization(momentum=0.0, epsilon=1e-6)
    with nn.TrainingScope():
        assert nn.is_training()
        close(layer(x).numpy().mean(0), np.zeros(4))
    close(layer.moving_mean.numpy(), x.mean(0))
    assert not nn.is_training()


def test_dropout_is_for_training_alone(strategy):
    x = np.ones((20, 20), "float32")
    layer = nn.Dropout(0.5, seed=1)
    close(layer(x).numpy(), x)
    with nn.TrainingScope():
        y = layer(x).numpy()
    assert set(np.unique(y)) == {0.0, 2.0}


def test_embeddings_look_up_combine_and_weigh(strategy):
    table = nn.Embedding(rows=10, dim=3, name="t")
    y = table([1, 2, 1]).numpy()
    rows = table.table.numpy()
    close(y, rows[[1, 2, 1]])
    bags = nn.Embedding(rows=10, dim=3, combiner="sum", initializer=rows, name="u")
    close(bags([1, 2, 3], row_splits=[0, 2, 3]).numpy(), [rows[1] + rows[2], rows[3]])
    close(bags(nn.Ids([1, 2], [0, 2], weights=[2.0, 1.0])).numpy(), [2 * rows[1] + rows[2]])
    with pytest.raises(ValueError, match="combiner"):
        nn.Embedding(rows=10, dim=3, combiner="max")


def test_a_hashed_table_takes_any_key_and_a_policy(strategy):
    policy = nn.RowPolicy(rows_max=1000, evictable=True)
    assert policy.rows_max == 1000 and policy.admit_after == 1
    table = nn.EmbeddingTable(dim=2, policy=policy, name="users")
    keys = np.array([123456789012345, -7], "int64")
    first = table(keys).numpy()
    table.table.scatter_add([table.row_of(-7)], np.ones((1, 2), "float32"))
    close(table(keys).numpy(), first + [[0, 0], [1, 1]])
    table.evict([-7])
    close(table(keys).numpy(), first)
    assert table.key_of(table.row_of(5)) == 5
    with pytest.raises(ValueError):
        nn.RowPolicy(admit_probability=0.0)


def test_missing_ids_count_as_if_they_were_not_there(strategy):
    v = cairn.Variable([[1.0], [3.0], [8.0]])
    close(nn.safe_embedding_lookup(v, [[0, 1], [2, -1], [-1, -1]], combiner="mean").numpy(), [[2], [8], [0]])
    close(nn.safe_embedding_lookup_sparse(v, [0, -1], [0, 1, 2], default_id=2).numpy(), [[1], [8]])


def test_wide_sums_the_weights_of_columns_and_crosses(strategy):
    wide = nn.Wide([nn.WideColumn("a", 2), nn.WideColumn("b", 3)], [nn.WideCross(["a", "b"])], initializer=1.0)
    assert wide.rows == 2 + 3 + 6
    close(wide([[0, 1], [2, 2]]).numpy(), [[3], [3]])
    assert nn.IdCross([2, 3])([[1], [2]]).numpy().tolist() == [5]


def test_gru_follows_its_equations(strategy):
    x = values(2, 3, 4)
    layer = nn.GRU(5, return_sequences=True)
    y = layer(x).numpy()
    kernel, recurrent, bias = [v.numpy() for v in layer.variables]

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    h = np.zeros((2, 5), "float32")
    for t in range(3):
        a, b = x[:, t] @ kernel + bias[0], h @ recurrent + bias[1]
        z, r = sigmoid(a[:, :5] + b[:, :5]), sigmoid(a[:, 5:10] + b[:, 5:10])
        h = z * h + (1 - z) * np.tanh(a[:, 10:] + r * b[:, 10:])
        close(y[:, t], h)
    assert nn.GRU(5)(x, initial_state=np.ones((2, 5), "float32")).shape == (2, 5)


def test_attention_of_one_head_follows_its_equations(strategy):
    x = values(2, 3, 4)
    layer = nn.MultiHeadAttention(num_heads=1, key_dim=4, use_bias=False)
    y = layer(x).numpy()
    q, k, v, out = [each.numpy() for each in layer.variables]
    scores = (x @ q) @ (x @ k).transpose(0, 2, 1) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    close(y, weights @ (x @ v) @ out)
    seen = layer(x, x, padding=[[1, 0, 0], [1, 1, 1]]).numpy()
    close(seen[0], np.repeat((x @ v @ out)[0, :1], 3, 0))
    assert nn.PositionalEmbedding(length=8)(x).shape == (2, 3, 4)


def test_interactions(strategy):
    a, b, c = values(2, 4), values(2, 4, seed=1), values(2, 4, seed=2)
    products = np.stack([(a * b).sum(1), (a * c).sum(1), (b * c).sum(1)], 1)
    y = nn.DotInteraction(keep_first=False)([a, b, c]).numpy()
    close(np.sort(y), np.sort(products))
    close(nn.FactorizationMachine()([a, b, c]).numpy()[:, 0], products.sum(1))
    cross = nn.Cross()
    y = cross(a, b).numpy()
    kernel, bias = [v.numpy() for v in cross.variables]
    close(y, a * (b @ kernel + bias) + b)
    assert nn.CrossNetwork(layers=2)(a).shape == (2, 4)


def test_models_of_several_parts(strategy):
    x = values(3, 4)
    tasks = nn.MMoE(tasks=2, experts=2, expert_units=[5], tower_units=[1])(x)
    assert [each.shape for each in tasks] == [(3, 1), (3, 1)]
    towers = nn.TwoTower(query=nn.Dense(4, name="q"), candidate=nn.Dense(4, name="c"), normalize=True)
    scores = towers(x, values(3, 2)).numpy()
    close(scores, towers.embed_query(x).numpy() @ towers.embed_candidate(values(3, 2)).numpy().T)
    for kind in ("dlrm", "dcn_v2", "deepfm"):
        tables = [nn.ClickTable(f"{kind}-user", 10), nn.ClickTable(f"{kind}-bag", 10, bags=True)]
        model = nn.ClickModel(tables, kind=kind, dim=4, bottom=[4], top=[4])
        assert model(x, [[1, 2, 3], nn.Ids([1, 2], [0, 1, 1, 2])]).shape == (3, 1)
    with pytest.raises(ValueError, match="dlrm"):
        nn.ClickModel([], kind="dcn")


# ---- lists, and layers in Python ----


def test_sequential_names_its_layers_and_takes_functions(strategy):
    def double(x):
        return x * 2.0

    network = nn.Sequential([nn.Dense(4), "relu", double, nn.Dense(1)])
    assert network(values(3, 2)).shape == (3, 1)
    assert [line["name"] for line in network.summary()] == ["dense", "relu", "double", "dense_1"]
    assert [v.name for v in network.variables] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    network.add(nn.Sequential([nn.Dense(2)]))
    assert len(network) == 5 and network(values(3, 2)).shape == (3, 2)
    with pytest.raises(TypeError, match="a layer is"):
        nn.Sequential([3])
    with pytest.raises(TypeError, match="one array"):
        nn.Sequential([nn.DotInteraction()])


class Scale(cairn.Layer):
    def build(self, x):
        self.scale = self.add_weight("scale", (x.shape[-1],), initializer="ones", regularizer="l2")

    def call(self, x):
        return x * self.scale


def test_a_layer_in_python_owns_variables(strategy):
    layer = Scale()
    network = nn.Sequential([nn.Dense(2), layer, Scale(name="last")])
    network(values(3, 4))
    assert layer.name == "scale"
    assert [v.name for v in network.variables] == ["dense/kernel", "dense/bias", "scale/scale", "last/scale"]
    layer.variables[0].assign([2.0, 2.0])
    close(layer(np.ones((1, 2), "float32")).numpy(), [[2, 2]])


def test_a_layer_in_python_has_variables_of_each_scope():
    layer = Scale()
    first, second = cairn.OneDeviceStrategy(), cairn.OneDeviceStrategy()
    with first.scope():
        layer(np.ones((1, 2), "float32"))
        layer.scale.assign([3.0, 3.0])
    with second.scope():
        close(layer(np.ones((1, 2), "float32")).numpy(), [[1, 1]])
    with first.scope():
        close(layer(np.ones((1, 2), "float32")).numpy(), [[3, 3]])


def test_a_layer_in_python_is_trained(strategy):
    class Two(cairn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Dense(1, name="inner")

        def build(self, x):
            self.shift = self.add_weight("shift", (1,), "zeros")

        def call(self, x):
            return self.inner(x) + self.shift

    layer = Two()
    optimizer = cairn.optimizers.SGD(0.1)

    @strategy.function
    def step(x, y):
        optimizer.minimize(cairn.mean(nn.mean_squared_error(layer(x), y)))

    x = values(16, 2)
    for _ in range(200):
        strategy.run(step, x, x.sum(1) + 3)
    close(layer.shift.numpy() + layer.inner.bias.numpy(), [3])
    assert len(layer.variables) == 3


def test_a_layer_in_python_takes_what_it_is_given(strategy):
    class Both(cairn.Layer):
        def build(self, pair, factor):
            self.weight = self.add_weight("weight", (2, pair[1].shape[-1]), dtype="float32", trainable=False)

        def call(self, pair, factor=1.0):
            return cairn.concat(pair, 1) * factor

    layer = Both(name="both")
    assert layer([cairn.Array([[1.0]]), cairn.Array([[2.0]])], np.float32(3)).numpy().tolist() == [[3, 6]]
    assert layer.weight.shape == (2, 1) and not layer.weight.trainable


def test_a_layer_without_call_says_so(strategy):
    class Empty(cairn.Layer):
        pass

    with pytest.raises(NotImplementedError, match="Empty"):
        Empty()(1.0)


def test_regularizers_add_to_the_loss(strategy):
    layer = nn.Dense(
        1, kernel_initializer="ones", kernel_regularizer=nn.l2(0.5), activity_regularizer=lambda y: cairn.sum(y) * 2.0
    )
    with nn.AddedLosses() as added:
        layer(np.ones((2, 3), "float32"))
        nn.add_loss("mine", 7.0)
        terms = sorted(term.item() for term in added.terms)
    close(terms, [1.5, 6.0, 7.0])
    with pytest.raises(ValueError, match="l1_l2"):
        nn.Dense(1, kernel_regularizer="l3")


def test_a_layer_that_its_own_activation_refers_to_is_collected():
    def make():
        layers = []

        def activation(x):
            return layers[0].kernel.read()[0, 0] * x

        layers.append(nn.Dense(2, activation=activation))
        layers.append(nn.Sequential([layers[0], lambda x: x * len(layers)]))
        return weakref.ref(activation)

    known = [make() for _ in range(3)]
    gc.collect()
    gc.collect()
    assert [each() for each in known] == [None] * 3
