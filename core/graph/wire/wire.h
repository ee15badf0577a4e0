// The C++ side of core/graph/graph.capnp: one write() and one read() for each kind of thing that
// travels.
//
// read() trusts nothing: counts, sizes, enumerators and shapes are checked against limits before
// anything is allocated, and a breach is an InvalidArgument that says what was wrong. A foreign
// exception of the reader itself (a pointer out of bounds, a traversal limit) is not caught here:
// core/graph/wire/graph_wire.cc and rpc/ turn it into an Error at their doors.
//   Thread  any.
#pragma once
#include <string>

#include "core/graph/graph.capnp.h"
#include "core/graph/graph.h"
#include "core/graph/variable.h"
#include "core/tensor/element.h"

namespace cairn::wire {

inline constexpr int kRankMax = 16;
inline constexpr std::size_t kNameBytesMax = 4096;
// of a variable: no model needs more
inline constexpr std::int64_t kElementsMax = std::int64_t{1} << 46;
// of one tensor, by the encoding
inline constexpr std::size_t kDataBytesMax = (std::size_t{1} << 29) - 1;
inline constexpr unsigned kColumnsMax = 1u << 16;
// inputs of a node, variables, arguments, names, numbers of an attribute
inline constexpr unsigned kListMax = 1u << 16;
inline constexpr unsigned kAttributesMax = 16;

void write(Shape::Builder out, const cairn::Shape& shape);
void write(TensorType::Builder out, const cairn::TensorType& type);
void write(TensorData::Builder out, const Tensor& tensor);  // one copy of the data
void write(UpdateRule::Builder out, const cairn::UpdateRule& rule);
// For rows that keep the rule: without the operations of a custom one.
void write_kept(UpdateRule::Builder out, const cairn::UpdateRule& rule);
void write(Initializer::Builder out, const cairn::Initializer& initializer);
void write(VariableSpec::Builder out, const cairn::VariableSpec& spec);
void write(ElementSpec::Builder out, const cairn::ElementSpec& spec);
void write(Graph::Builder out, const cairn::Graph& graph);

cairn::Shape read(Shape::Reader in);
cairn::TensorType read(TensorType::Reader in);
// a copy; every dimension must be known and match the bytes that came
Tensor read(TensorData::Reader in);
// The same without a copy: the tensor refers to the message, which `owner` keeps alive and
// unchanged.
Tensor read(TensorData::Reader in, std::shared_ptr<const void> owner);
cairn::UpdateRule read(UpdateRule::Reader in);
cairn::Initializer read(Initializer::Reader in);
cairn::VariableSpec read(VariableSpec::Reader in);
cairn::ElementSpec read(ElementSpec::Reader in);
cairn::Graph read(Graph::Reader in);  // verified, as parse_graph() says

// `list` itself if it is no longer than `most`. Every list of structs must come through here or be
// checked otherwise: one of empty structs takes no bytes of a message, however long it claims to
// be.
// Errors  InvalidArgument naming `what`.
template <typename List>
List bounded(List list, unsigned most, const char* what) {
  if (list.size() > most)
    throw InvalidArgumentError(
        str("a message lists ", list.size(), " ", what, "; at most ", most, " are taken"));
  return list;
}

std::string read_name(capnp::Text::Reader in);  // at most kNameBytesMax

}  // namespace cairn::wire
