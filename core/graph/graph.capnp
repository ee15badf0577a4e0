# Core's part of the wire: values, variables, elements and graphs. Numbers are never reused or
# renumbered.
# C++ conversions are in core/graph/wire/wire.h; they verify whatever they read.
@0xf240a470dede7fbc;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cairn::wire");

struct Shape {
  dims @0 :List(Int64);  # outermost first; -1: unknown
}

struct TensorType {
  dtype @0 :UInt8;  # cairn::DType
  shape @1 :Shape;
}

struct TensorData {
  type @0 :TensorType;
  data @1 :Data;           # row-major, little-endian; empty for strings
  strings @2 :List(Data);  # a string an element, for the string dtype only
}

struct UpdateRule {
  kind @0 :UInt8;  # cairn::RuleKind
  constants @1 :List(Float32);
  custom @2 :CustomRule;  # of RuleKind::kCustom; without it: the one that the receiver keeps with the rows
}

struct CustomRule {
  name @0 :Text;
  slots @1 :List(RuleSlot);
  graph @2 :Data;  # a Graph: value, gradient, learning_rate, t, slots -> value, slots
}
struct RuleSlot {
  name @0 :Text;
  initialValue @1 :Float32;
}

struct Initializer {
  kind @0 :UInt8;  # cairn::Initializer::Kind
  a @1 :Float32;
  b @2 :Float32;
  seed @3 :UInt64;
  value @4 :TensorData;  # kValue only
}

struct VariableSpec {
  name @0 :Text;
  type @1 :TensorType;
  initializer @2 :Initializer;
  aggregation @3 :UInt8;
  synchronization @4 :UInt8;
  trainable @5 :Bool;
  hashed @6 :Bool;
  policy @7 :RowPolicy;  # none: all rows are kept
}

# Of a hashed variable: see core/graph/row_policy.h.
struct RowPolicy {
  admitAfter @0 :UInt32 = 1;
  sketchRows @1 :Int64 = 1048576;
  admitProbability @2 :Float64 = 1;
  rowsMax @3 :Int64;
  stepsToLive @4 :Int64;
  sparedNorm @5 :Float64;
  evictable @6 :Bool;
}

struct ColumnSpec {
  name @0 :Text;
  type @1 :TensorType;
}

struct ElementSpec {
  columns @0 :List(ColumnSpec);
  label @1 :Text;
}

struct ValueRef {
  node @0 :Int32;
  output @1 :Int32;
}

struct Attribute {
  name @0 :Text;
  value :union {
    integer @1 :Int64;
    real @2 :Float64;
    boolean @3 :Bool;
    text @4 :Text;
    integers @5 :List(Int64);
    tensor @6 :TensorData;
    rule @7 :UpdateRule;
  }
}

struct Node {
  op @0 :Text;
  inputs @1 :List(ValueRef);       # earlier nodes only
  attributes @2 :List(Attribute);  # ascending by name
  outputs @3 :List(TensorType);
}

struct GraphVariable {
  name @0 :Text;
  type @1 :TensorType;
  mirrored @2 :Bool;  # the replicas that run the graph keep copies of it in step
}

struct Graph {
  arguments @0 :List(TensorType);
  iterators @1 :List(ElementSpec);
  variables @2 :List(GraphVariable);
  nodes @3 :List(Node);  # in program order
  outputs @4 :List(ValueRef);
  outputNames @5 :List(Text);
}
