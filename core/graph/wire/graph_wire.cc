// Graphs as bytes: core/graph/graph.capnp, written in one fixed order so that equal graphs have
// equal bytes.
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstring>

#include "core/base/random.h"
#include "core/graph/op_def.h"
#include "core/graph/wire/wire.h"

namespace cairn {
namespace wire {
namespace {

void write_value(Attribute::Value::Builder out, const AttributeValue& value) {
  struct Write {
    Attribute::Value::Builder& out;
    void operator()(std::int64_t v) { out.setInteger(v); }
    void operator()(double v) { out.setReal(v); }
    void operator()(bool v) { out.setBoolean(v); }
    void operator()(const std::string& v) { out.setText(v); }
    void operator()(const std::vector<std::int64_t>& v) {
      auto list = out.initIntegers(static_cast<unsigned>(v.size()));
      for (unsigned i = 0; i < list.size(); ++i) list.set(i, v[i]);
    }
    void operator()(const Tensor& v) { write(out.initTensor(), v); }
    void operator()(const cairn::UpdateRule& v) { write(out.initRule(), v); }
  };
  std::visit(Write{out}, value);
}

// The alternatives of the union are those of AttributeValue. One that a later release adds is
// refused.
AttributeValue read_value(Attribute::Value::Reader in) {
  switch (in.which()) {
    case Attribute::Value::INTEGER: return in.getInteger();
    case Attribute::Value::REAL: return in.getReal();
    case Attribute::Value::BOOLEAN: return in.getBoolean();
    case Attribute::Value::TEXT: return read_name(in.getText());
    case Attribute::Value::TENSOR: return read(in.getTensor());
    case Attribute::Value::RULE: return read(in.getRule());
    case Attribute::Value::INTEGERS: {
      auto list = in.getIntegers();
      if (list.size() > kListMax)
        throw InvalidArgumentError(str("an attribute lists ", list.size(), " numbers"));
      std::vector<std::int64_t> numbers;
      for (std::int64_t n : list) numbers.push_back(n);
      return numbers;
    }
  }
  throw InvalidArgumentError("an attribute of a kind that this version does not know");
}

void write_types(capnp::List<TensorType>::Builder out,
                 const std::vector<cairn::TensorType>& types) {
  for (unsigned i = 0; i < out.size(); ++i) write(out[i], types[i]);
}

std::vector<cairn::TensorType> read_types(capnp::List<TensorType>::Reader in) {
  if (in.size() > kListMax) throw InvalidArgumentError(str(in.size(), " types in a list"));
  std::vector<cairn::TensorType> types;
  for (auto type : in) types.push_back(read(type));
  return types;
}

void write_refs(capnp::List<ValueRef>::Builder out, const std::vector<cairn::ValueRef>& refs) {
  for (unsigned i = 0; i < out.size(); ++i) {
    out[i].setNode(refs[i].node);
    out[i].setOutput(refs[i].output);
  }
}

std::vector<cairn::ValueRef> read_refs(capnp::List<ValueRef>::Reader in) {
  if (in.size() > kListMax) throw InvalidArgumentError(str(in.size(), " references in a list"));
  std::vector<cairn::ValueRef> refs;
  for (auto ref : in) refs.push_back({ref.getNode(), ref.getOutput()});
  return refs;
}

void write_node(Node::Builder out, const cairn::Node& node) {
  out.setOp(std::string(node.op->name));
  write_refs(out.initInputs(static_cast<unsigned>(node.inputs.size())), node.inputs);
  const auto& entries = node.attributes.entries();
  auto attributes = out.initAttributes(static_cast<unsigned>(entries.size()));
  for (unsigned i = 0; i < attributes.size(); ++i) {
    attributes[i].setName(entries[i].first);
    write_value(attributes[i].getValue(), entries[i].second);
  }
  write_types(out.initOutputs(static_cast<unsigned>(node.outputs.size())), node.outputs);
}

// Operations travel by name, which both sides look up in their own table.
cairn::Node read_node(Node::Reader in) {
  cairn::Node node;
  std::string name = read_name(in.getOp());
  node.op = find_op(name);
  if (node.op == nullptr) throw InvalidArgumentError(str("there is no operation \"", name, "\""));
  node.inputs = read_refs(in.getInputs());
  auto attributes = in.getAttributes();
  if (attributes.size() > kAttributesMax)
    throw InvalidArgumentError(str(node.op->name, " with ", attributes.size(), " attributes"));
  // Strictly ascending names: a graph has one form only, in which nothing can be said twice.
  std::string last;
  for (auto attribute : attributes) {
    std::string attribute_name = read_name(attribute.getName());
    if (attribute_name <= last)
      throw InvalidArgumentError(str(node.op->name, ": its attributes are not in order"));
    node.attributes.set(attribute_name, read_value(attribute.getValue()));
    last = std::move(attribute_name);
  }
  node.outputs = read_types(in.getOutputs());
  return node;
}

void read_nodes(capnp::List<Node>::Reader in, cairn::Graph& graph) {
  if (in.size() > kGraphNodesMax)
    throw InvalidArgumentError(str("a graph of ", in.size(), " nodes; at most ", kGraphNodesMax));
  for (auto node : in) {
    try {
      graph.nodes.push_back(read_node(node));
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(str("node ", graph.nodes.size(), ": ", error.what()));
    }
  }
}

}  // namespace

void write(Graph::Builder out, const cairn::Graph& graph) {
  write_types(out.initArguments(static_cast<unsigned>(graph.arguments.size())), graph.arguments);
  auto iterators = out.initIterators(static_cast<unsigned>(graph.iterators.size()));
  for (unsigned i = 0; i < iterators.size(); ++i) write(iterators[i], graph.iterators[i]);
  auto variables = out.initVariables(static_cast<unsigned>(graph.variables.size()));
  for (unsigned i = 0; i < variables.size(); ++i) {
    variables[i].setName(graph.variables[i].name);
    write(variables[i].initType(), graph.variables[i].type);
    variables[i].setMirrored(graph.variables[i].mirrored);
  }
  auto nodes = out.initNodes(static_cast<unsigned>(graph.nodes.size()));
  for (unsigned i = 0; i < nodes.size(); ++i) write_node(nodes[i], graph.nodes[i]);
  write_refs(out.initOutputs(static_cast<unsigned>(graph.outputs.size())), graph.outputs);
  auto names = out.initOutputNames(static_cast<unsigned>(graph.output_names.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, graph.output_names[i]);
}

// Lists are bounded before anything is made of their entries, and the whole is verified at the end.
cairn::Graph read(Graph::Reader in) {
  cairn::Graph graph;
  graph.arguments = read_types(in.getArguments());
  auto iterators = in.getIterators();
  auto variables = in.getVariables();
  auto names = in.getOutputNames();
  for (unsigned n : {iterators.size(), variables.size(), names.size()})
    if (n > kListMax)
      throw InvalidArgumentError(str("a graph with a list of ", n, " entries; at most ", kListMax));
  for (auto spec : iterators) graph.iterators.push_back(read(spec));
  for (auto variable : variables)
    graph.variables.push_back(
        {read_name(variable.getName()), read(variable.getType()), variable.getMirrored()});
  read_nodes(in.getNodes(), graph);
  graph.outputs = read_refs(in.getOutputs());
  for (auto name : names) graph.output_names.push_back(read_name(name));
  verify(graph);
  return graph;
}

}  // namespace wire

namespace {

// An upper bound of what the constants take, before memory is asked for.
std::size_t constant_bytes(const Graph& graph) {
  // Strings are left out, since their number does not give their bytes; the message is measured
  // again when it is made.
  std::size_t bytes = 0;
  for (const Node& node : graph.nodes)
    for (const auto& [name, value] : node.attributes.entries())
      if (const auto* tensor = std::get_if<Tensor>(&value);
          tensor != nullptr && tensor->dtype() != DType::kString)
        bytes += tensor->bytes();
  return bytes;
}

[[noreturn]] void too_large(std::size_t bytes) {
  throw InvalidArgumentError(str("a graph of ", bytes, " bytes; at most ", kGraphBytesMax,
                                 ": pass large values as arguments or keep them in variables"));
}

// Bytes beyond the end read as zeros; the length is hashed too, so such texts still differ.
std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t begin) {
  std::uint64_t word = 0;
  if (begin < bytes.size())
    std::memcpy(&word, bytes.data() + begin, std::min<std::size_t>(8, bytes.size() - begin));
  return word;
}

}  // namespace

std::vector<std::byte> serialize(const Graph& graph) {
  if (std::size_t bytes = constant_bytes(graph); bytes > kGraphBytesMax) too_large(bytes);
  capnp::MallocMessageBuilder message;
  wire::write(message.initRoot<wire::Graph>(), graph);
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asBytes();
  if (bytes.size() > kGraphBytesMax) too_large(bytes.size());
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.begin());
  return {begin, begin + bytes.size()};
}

// Philox as the mixing function of a chain: each block of 16 bytes is its key and half of its
// counter.
GraphHash content_hash(std::span<const std::byte> bytes) {
  std::uint64_t low = bytes.size(), high = 0x6361697267726170;
  for (std::size_t i = 0; i < bytes.size(); i += 16) {
    RandomBits mixed = philox(word_at(bytes, i), low ^ word_at(bytes, i + 8), high);
    low = mixed[0] | std::uint64_t{mixed[1]} << 32;
    high = mixed[2] | std::uint64_t{mixed[3]} << 32;
  }
  GraphHash hash;
  std::memcpy(hash.data(), &low, 8);
  std::memcpy(hash.data() + 8, &high, 8);
  return hash;
}

Graph parse_graph(std::span<const std::byte> bytes) {
  if (bytes.size() > kGraphBytesMax) too_large(bytes.size());
  if (bytes.size() % sizeof(capnp::word) != 0)
    throw InvalidArgumentError(str("a graph of ", bytes.size(), " bytes: not whole words"));
  // Cap'n Proto reads words in place, and bytes off a wire may lie anywhere.
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  if (!bytes.empty()) std::memcpy(words.begin(), bytes.data(), bytes.size());
  // Pointers may lead to the same bytes many times; reading each byte a few times is all that an
  // honest graph needs.
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 4 * words.size() + 1024;
  options.nestingLimit = 16;
  try {
    capnp::FlatArrayMessageReader reader(words, options);
    return wire::read(reader.getRoot<wire::Graph>());
  } catch (const kj::Exception& error) {
    throw InvalidArgumentError(str("the bytes are no graph: ", error.getDescription().cStr()));
  }
}

}  // namespace cairn
