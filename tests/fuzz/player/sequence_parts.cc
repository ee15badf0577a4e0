#include "tests/fuzz/player/sequence_parts.h"

#include <functional>

#include "core/base/error.h"
#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "data/stage/dataset_wire.h"

namespace cairn::fuzz {
namespace {

const UpdateRule kAdagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}},
    kAdam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}}, kSgd{RuleKind::kSgd, {}};

VariableLayout variable(VariableId id, std::string name, Shape shape, UpdateRule rule,
                        bool hashed = false) {
  auto spec = std::make_shared<VariableSpec>(
      VariableSpec{.name = std::move(name), .shape = std::move(shape)});
  spec->hashed = hashed;
  const std::int64_t rows = spec->rows(), half = rows / 2;
  return {id, std::move(spec), std::move(rule), {{0, {0, half}}, {1, {half, rows}}}};
}

const Dataset& numbers() {
  static const Dataset dataset = Dataset::range(40).repeat(50).batch(4);
  return dataset;
}

Array array(const TraceArgument& argument) { return std::get<Array>(argument); }

std::vector<std::byte> traced(const std::vector<SignatureEntry>& signature,
                              const std::function<Array(const std::vector<TraceArgument>&)>& body) {
  return trace(
             [&](const std::vector<TraceArgument>& arguments) {
               return detail::to_outputs(body(arguments));
             },
             signature)
      .bytes;
}

std::vector<std::byte> make_function(std::uint32_t id) {
  const TensorType floats{DType::kFloat32, {Shape::kUnknown}},
      ids{DType::kInt64, {Shape::kUnknown}};
  const Variable w(played_variables()[0].spec), m(played_variables()[1].spec),
      b(played_variables()[2].spec), h(played_variables()[3].spec);
  switch (id) {
    case 0: return traced({floats}, [](const auto& in) { return sum(array(in[0])); });
    case 1:
      return traced({numbers().element_spec()}, [](const auto& in) {
        return sum(cast(std::get<Iterator>(in[0]).get_next().features["value"], DType::kFloat32));
      });
    case 2:
      return traced({ids}, [&](const auto& in) {
        const Array rows = w.gather(array(in[0])), hashed = h.gather(array(in[0]));
        w.update(kAdagrad, IndexedSlices{array(in[0]), rows, w.shape()}, Array(0.5f));
        h.update(kAdagrad, IndexedSlices{array(in[0]), hashed, h.shape()}, Array(0.5f));
        return sum(rows);
      });
    case 3:
      return traced({floats}, [&](const auto& in) {
        const Array value = b.read() * sum(array(in[0])), moments = m.read();
        b.update(kSgd, value, Array(0.1f));
        m.update(kAdam, moments, Array(0.1f));
        return sum(value);
      });
    default:
      return traced({floats}, [&](const auto& in) {
        w.assign_add(w.read() * sum(array(in[0])));
        return sum(w.read());
      });
  }
}

}  // namespace

const std::vector<VariableLayout>& played_variables() {
  static const std::vector<VariableLayout> all = {
      variable(0, "w", {8, 2}, kAdagrad), variable(1, "m", {4, 3}, kAdam),
      variable(2, "b", {256, 4}, kSgd), variable(3, "h", {1 << 20, 2}, kAdagrad, true),
      variable(4, "large", {1 << 15, 32}, kSgd)};
  return all;
}

const std::vector<std::byte>& played_function(std::uint32_t id) {
  static const std::vector<std::vector<std::byte>> all = [] {
    std::vector<std::vector<std::byte>> made;
    for (std::uint32_t i = 0; i < kFunctions; ++i) made.push_back(make_function(i));
    return made;
  }();
  return all.at(id);
}

const std::vector<std::byte>& played_dataset() {
  static const std::vector<std::byte> bytes = serialize(numbers());
  return bytes;
}

}  // namespace cairn::fuzz
