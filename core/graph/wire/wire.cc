#include "core/graph/wire/wire.h"
#include "core/graph/custom_rule.h"

#include <cstring>
#include <utility>

namespace cairn::wire {
namespace {

template <typename E>
E checked_enum(unsigned value, unsigned count, const char* what) {
  if (value >= count) throw InvalidArgumentError(str("no ", what, " has the number ", value));
  return static_cast<E>(value);
}

// Bytes that the type needs, or InvalidArgument: a sender's dimensions may be anything.
std::size_t checked_bytes(const cairn::TensorType& type) {
  std::int64_t elements = 1;
  bool empty = false;
  for (std::int64_t d : type.shape.dims()) {
    if (d < 0)
      throw InvalidArgumentError(
          str("a value's shape ", type.shape.to_string(), " has an unknown dimension"));
    empty = empty || d == 0;
    // the others are bounded all the same: a row's dimensions are multiplied elsewhere
    if (d == 0) continue;
    if (d > kElementsMax / elements)
      throw InvalidArgumentError(str("the shape ", type.shape.to_string(), " is too large"));
    elements *= d;
  }
  if (empty) return 0;
  return static_cast<std::size_t>(elements) *
         (type.dtype == DType::kString ? 1 : dtype_bytes(type.dtype));
}

Tensor read_strings(TensorData::Reader in, const cairn::TensorType& type) {
  auto all = in.getStrings();
  if (checked_bytes(type) != all.size())
    throw InvalidArgumentError(str(all.size(), " strings came for a tensor ", type.to_string()));
  std::vector<std::string> values;
  values.reserve(all.size());
  for (auto text : all)
    values.emplace_back(reinterpret_cast<const char*>(text.begin()), text.size());
  return Tensor::strings(type.shape, std::move(values));
}

// Checks the bytes that came against the type that was said.
void check_data(const cairn::TensorType& type, capnp::Data::Reader data) {
  if (checked_bytes(type) != data.size())
    throw InvalidArgumentError(str(data.size(), " bytes came for a tensor ", type.to_string()));
  // Reading a bool that is neither 0 nor 1 is undefined behaviour in C++, and the bytes may come
  // from any peer.
  if (type.dtype == DType::kBool)
    for (kj::byte b : data)
      if (b > 1)
        throw InvalidArgumentError(str("a bool of ", int{b}, " in a tensor ", type.to_string()));
}

}  // namespace

void write(Shape::Builder out, const cairn::Shape& shape) {
  auto dims = out.initDims(static_cast<unsigned>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) dims.set(static_cast<unsigned>(i), shape[i]);
}

void write(TensorType::Builder out, const cairn::TensorType& type) {
  out.setDtype(static_cast<std::uint8_t>(type.dtype));
  write(out.initShape(), type.shape);
}

void write(TensorData::Builder out, const Tensor& tensor) {
  write(out.initType(), tensor.type());
  if (tensor.dtype() != DType::kString) {
    if (tensor.bytes() > kDataBytesMax)
      throw InvalidArgumentError(
          str("a tensor of ", tensor.bytes(), " bytes does not fit into one message"));
    auto data = out.initData(static_cast<unsigned>(tensor.bytes()));
    if (tensor.bytes() > 0) std::memcpy(data.begin(), tensor.raw(), tensor.bytes());
    return;
  }
  auto all = tensor.string_values();
  auto strings = out.initStrings(static_cast<unsigned>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    strings.set(static_cast<unsigned>(i),
                {reinterpret_cast<const kj::byte*>(all[i].data()), all[i].size()});
}

void write(UpdateRule::Builder out, const cairn::UpdateRule& rule) {
  write_kept(out, rule);
  if (rule.custom == nullptr) return;
  auto custom = out.initCustom();
  custom.setName(rule.custom->name());
  auto slots = custom.initSlots(static_cast<unsigned>(rule.custom->slots().size()));
  for (unsigned i = 0; i < slots.size(); ++i) {
    slots[i].setName(rule.custom->slots()[i].name);
    slots[i].setInitialValue(rule.custom->slots()[i].initial_value);
  }
  const std::span<const std::byte> graph = rule.custom->bytes();
  custom.setGraph({reinterpret_cast<const kj::byte*>(graph.data()), graph.size()});
}

void write_kept(UpdateRule::Builder out, const cairn::UpdateRule& rule) {
  out.setKind(static_cast<std::uint8_t>(rule.kind));
  auto constants = out.initConstants(cairn::UpdateRule::kConstants);
  for (unsigned i = 0; i < cairn::UpdateRule::kConstants; ++i) constants.set(i, rule.constants[i]);
}

// The value travels only with the kind that has one.
void write(Initializer::Builder out, const cairn::Initializer& initializer) {
  out.setKind(static_cast<std::uint8_t>(initializer.kind));
  out.setA(initializer.a);
  out.setB(initializer.b);
  out.setSeed(initializer.seed);
  if (initializer.kind == cairn::Initializer::Kind::kValue)
    write(out.initValue(), initializer.value);
}

void write(VariableSpec::Builder out, const cairn::VariableSpec& spec) {
  out.setName(spec.name);
  write(out.initType(), cairn::TensorType{spec.dtype, spec.shape});
  write(out.initInitializer(), spec.initializer);
  out.setAggregation(static_cast<std::uint8_t>(spec.aggregation));
  out.setSynchronization(static_cast<std::uint8_t>(spec.synchronization));
  out.setTrainable(spec.trainable);
  out.setHashed(spec.hashed);
  if (spec.policy == cairn::RowPolicy{}) return;
  auto policy = out.initPolicy();
  policy.setAdmitAfter(spec.policy.admit_after);
  policy.setSketchRows(spec.policy.sketch_rows);
  policy.setAdmitProbability(spec.policy.admit_probability);
  policy.setRowsMax(spec.policy.rows_max);
  policy.setStepsToLive(spec.policy.steps_to_live);
  policy.setSparedNorm(spec.policy.spared_norm);
  policy.setEvictable(spec.policy.evictable);
}

void write(ElementSpec::Builder out, const cairn::ElementSpec& spec) {
  auto columns = out.initColumns(static_cast<unsigned>(spec.columns.size()));
  for (unsigned i = 0; i < columns.size(); ++i) {
    columns[i].setName(spec.columns[i].name);
    write(columns[i].initType(), spec.columns[i].type);
  }
  out.setLabel(spec.label);
}

// Rank and dimensions are bounded here, so that products of them do not overflow later.
cairn::Shape read(Shape::Reader in) {
  auto dims = in.getDims();
  if (dims.size() > kRankMax)
    throw InvalidArgumentError(str("a shape of rank ", dims.size(), "; at most ", kRankMax));
  std::vector<std::int64_t> all;
  for (std::int64_t d : dims) {
    if (d < cairn::Shape::kUnknown || d > kElementsMax)
      throw InvalidArgumentError(str("a dimension of ", d, " in a shape"));
    all.push_back(d);
  }
  return cairn::Shape(std::move(all));
}

cairn::TensorType read(TensorType::Reader in) {
  return {checked_enum<DType>(in.getDtype(), kDTypeCount, "dtype"), read(in.getShape())};
}

Tensor read(TensorData::Reader in) {
  cairn::TensorType type = read(in.getType());
  if (type.dtype == DType::kString) return read_strings(in, type);
  auto data = in.getData();
  check_data(type, data);
  Tensor tensor(type.dtype, type.shape);
  if (data.size() > 0) std::memcpy(tensor.mutable_raw(), data.begin(), data.size());
  return tensor;
}

// Without a copy: the tensor refers to the message, which its owner keeps.
Tensor read(TensorData::Reader in, std::shared_ptr<const void> owner) {
  cairn::TensorType type = read(in.getType());
  if (type.dtype == DType::kString) return read_strings(in, type);
  auto data = in.getData();
  check_data(type, data);
  if (data.size() == 0) return Tensor(type.dtype, type.shape);
  return Tensor::borrowed(type.dtype, type.shape, data.begin(), std::move(owner));
}

namespace {

std::shared_ptr<const cairn::CustomRule> read_custom(CustomRule::Reader in) {
  auto slots = in.getSlots();
  if (slots.size() > cairn::CustomRule::kSlotsMax)
    throw InvalidArgumentError(str("an update rule with ", slots.size(), " slots"));
  std::vector<cairn::RuleSlot> all;
  for (const auto slot : slots) all.push_back({read_name(slot.getName()), slot.getInitialValue()});
  const auto graph = in.getGraph();
  return cairn::CustomRule::of(read_name(in.getName()), std::move(all),
                               {reinterpret_cast<const std::byte*>(graph.begin()), graph.size()});
}

}  // namespace

// Constants that an older sender does not know are 0.
cairn::UpdateRule read(UpdateRule::Reader in) {
  auto constants = in.getConstants();
  if (constants.size() > cairn::UpdateRule::kConstants)
    throw InvalidArgumentError(str("an update rule with ", constants.size(), " constants"));
  cairn::UpdateRule rule{checked_enum<RuleKind>(in.getKind(), kRuleKindCount, "update rule"), {}};
  for (unsigned i = 0; i < constants.size(); ++i) rule.constants[i] = constants[i];
  if (in.hasCustom()) rule.custom = read_custom(in.getCustom());
  verify_rule(rule);
  return rule;
}

cairn::Initializer read(Initializer::Reader in) {
  cairn::Initializer made;
  made.kind = checked_enum<cairn::Initializer::Kind>(in.getKind(), 6, "initializer");
  made.a = in.getA();
  made.b = in.getB();
  made.seed = in.getSeed();
  if (made.kind == cairn::Initializer::Kind::kValue) made.value = read(in.getValue());
  return made;
}

cairn::VariableSpec read(VariableSpec::Reader in) {
  cairn::VariableSpec spec;
  spec.name = read_name(in.getName());
  cairn::TensorType type = read(in.getType());
  checked_bytes(type);
  spec.dtype = type.dtype;
  spec.shape = std::move(type.shape);
  spec.initializer = read(in.getInitializer());
  spec.aggregation = checked_enum<Aggregation>(in.getAggregation(), 4, "aggregation");
  spec.synchronization =
      checked_enum<Synchronization>(in.getSynchronization(), 4, "synchronization");
  spec.trainable = in.getTrainable();
  spec.hashed = in.getHashed();
  if (in.hasPolicy()) {
    auto policy = in.getPolicy();
    spec.policy = {policy.getAdmitAfter(), policy.getSketchRows(),  policy.getAdmitProbability(),
                   policy.getRowsMax(),    policy.getStepsToLive(), policy.getSparedNorm(),
                   policy.getEvictable()};
  }
  verify_spec(spec);
  return spec;
}

cairn::ElementSpec read(ElementSpec::Reader in) {
  auto columns = in.getColumns();
  if (columns.size() > kColumnsMax)
    throw InvalidArgumentError(str("an element of ", columns.size(), " columns"));
  cairn::ElementSpec spec;
  for (auto column : columns)
    spec.columns.push_back({read_name(column.getName()), read(column.getType())});
  spec.label = read_name(in.getLabel());
  if (!spec.label.empty()) spec.find(spec.label);
  return spec;
}

// Names go into messages, logs and keys, so they are bounded.
std::string read_name(capnp::Text::Reader in) {
  if (in.size() > kNameBytesMax)
    throw InvalidArgumentError(str("a name of ", in.size(), " bytes; at most ", kNameBytesMax));
  return {in.begin(), in.size()};
}

}  // namespace cairn::wire
