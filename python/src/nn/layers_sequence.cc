// cairn.nn: layers over sequences.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "layer_object.h"
#include "nn/nn.h"

namespace cairn::python {
namespace {

void bind_gru(nb::module_& m) {
  nb::class_<LayerOf<nn::GRU>, LayerObject>(m, "GRU", nb::type_slots(collected<LayerObject>()),
                                            R"(A gated recurrent layer over [batch, time, width].

>>> cairn.nn.GRU(8)(np.ones((2, 3, 4), "float32")).shape
(2, 8))")
      .def(
          "__init__",
          [](LayerOf<nn::GRU>* self, std::int64_t units, bool return_sequences, bool go_backwards,
             ActivationLike activation, ActivationLike recurrent_activation, bool use_bias,
             InitializerLike kernel_initializer, InitializerLike recurrent_initializer,
             InitializerLike bias_initializer, RegularizerLike kernel_regularizer,
             RegularizerLike recurrent_regularizer, RegularizerLike bias_regularizer,
             const std::string& name, std::uint64_t seed) {
            Kept kept;
            nn::GRUOptions options{
                .units = units,
                .return_sequences = return_sequences,
                .go_backwards = go_backwards,
                .activation = activation.in(kept),
                .recurrent_activation = recurrent_activation.in(kept),
                .use_bias = use_bias,
                .kernel_initializer = kernel_initializer.kernel(kept),
                .recurrent_initializer = recurrent_initializer.kernel(kept),
                .bias_initializer = bias_initializer.value(3 * units, 3 * units, seed),
                .kernel_regularizer = kernel_regularizer.in(kept),
                .recurrent_regularizer = recurrent_regularizer.in(kept),
                .bias_regularizer = bias_regularizer.in(kept),
                .name = name,
                .seed = seed};
            make_layer(self, nn::GRU(std::move(options)), std::move(kept));
          },
          "units"_a, nb::kw_only(), "return_sequences"_a = false, "go_backwards"_a = false,
          "activation"_a = nb::none(), "recurrent_activation"_a = nb::none(), "use_bias"_a = true,
          "kernel_initializer"_a = nb::none(), "recurrent_initializer"_a = nb::none(),
          "bias_initializer"_a = nb::none(), "kernel_regularizer"_a = nb::none(),
          "recurrent_regularizer"_a = nb::none(), "bias_regularizer"_a = nb::none(), "name"_a = "",
          "seed"_a = 0)
      .def(
          "__call__",
          [](const LayerOf<nn::GRU>& self, ArrayLike x, nb::handle initial_state) {
            const Array state = initial_state.is_none() ? Array() : array_of(initial_state);
            return call_layer(self, Array(x), state);
          },
          "x"_a, "initial_state"_a = nb::none(),
          nb::sig("def __call__(self, x: cairn.typing.ArrayLike, initial_state: "
                  "cairn.typing.ArrayLike | None = None) -> cairn._cairn.Array"));
}

void bind_attention(nb::module_& m) {
  using Attention = LayerOf<nn::MultiHeadAttention>;
  nb::class_<Attention, LayerObject>(m, "MultiHeadAttention",
                                     nb::type_slots(collected<LayerObject>()),
                                     R"(Attention of several heads (Vaswani et al., NIPS 2017).

>>> layer = cairn.nn.MultiHeadAttention(num_heads=2, key_dim=4, causal=True)
>>> layer(np.ones((2, 3, 8), "float32")).shape
(2, 3, 8))")
      .def(
          "__init__",
          [](Attention* self, std::int64_t num_heads, std::int64_t key_dim, std::int64_t value_dim,
             std::int64_t output_dim, bool causal, float dropout, bool use_bias,
             InitializerLike kernel_initializer, RegularizerLike kernel_regularizer,
             RegularizerLike bias_regularizer, const std::string& name, std::uint64_t seed) {
            Kept kept;
            nn::MultiHeadAttentionOptions options{
                .num_heads = num_heads,
                .key_dim = key_dim,
                .value_dim = value_dim,
                .output_dim = output_dim,
                .causal = causal,
                .dropout = dropout,
                .use_bias = use_bias,
                .kernel_initializer = kernel_initializer.kernel(kept),
                .kernel_regularizer = kernel_regularizer.in(kept),
                .bias_regularizer = bias_regularizer.in(kept),
                .name = name,
                .seed = seed};
            make_layer(self, nn::MultiHeadAttention(std::move(options)), std::move(kept));
          },
          "num_heads"_a, "key_dim"_a, "value_dim"_a = 0, "output_dim"_a = 0, nb::kw_only(),
          "causal"_a = false, "dropout"_a = 0.0, "use_bias"_a = true,
          "kernel_initializer"_a = nb::none(), "kernel_regularizer"_a = nb::none(),
          "bias_regularizer"_a = nb::none(), "name"_a = "", "seed"_a = 0)
      .def(
          "__call__",
          [](const Attention& self, ArrayLike query, nb::handle value, nb::handle padding) {
            const Array q = query;
            const Array v = value.is_none() ? q : array_of(value);
            return call_layer(self, q, v, padding.is_none() ? Array() : array_of(padding));
          },
          "query"_a, "value"_a = nb::none(), "padding"_a = nb::none(),
          nb::sig("def __call__(self, query: cairn.typing.ArrayLike, value: cairn.typing.ArrayLike "
                  "| None = None, padding: cairn.typing.ArrayLike | None = None) -> "
                  "cairn._cairn.Array"),
          "Of `query` on itself, or on `value`, whose positions are not seen where `padding` is "
          "False.");
}

void bind_positions(nb::module_& m) {
  layer_class<nn::PositionalEmbedding>(m, "PositionalEmbedding",
                                       R"(Adds a vector for each position, which is learnt.

>>> cairn.nn.PositionalEmbedding(length=16)(np.ones((2, 3, 8), "float32")).shape
(2, 3, 8))")
      .def(
          "__init__",
          [](LayerOf<nn::PositionalEmbedding>* self, std::int64_t length,
             InitializerLike initializer, const std::string& name) {
            nn::PositionalEmbeddingOptions options{.length = length, .name = name};
            if (auto given = initializer.maybe(length, length)) options.initializer = *given;
            make_layer(self, nn::PositionalEmbedding(std::move(options)), {});
          },
          "length"_a, "initializer"_a = nb::none(), "name"_a = "");
}

}  // namespace

void bind_sequence_layers(nb::module_& m) {
  bind_gru(m);
  bind_attention(m);
  bind_positions(m);
}

}  // namespace cairn::python
