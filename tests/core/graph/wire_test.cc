// Values and declarations on the wire: what comes back is what was sent, and what a sender may not
// say is refused.
#include "core/graph/wire/wire.h"

#include <capnp/message.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "tests/core/graph_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Schema, typename T>
auto there_and_back(const T& value) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Schema>();
  wire::write(root, value);
  return wire::read(root.asReader());
}

// The message of the refusal of what `fill` writes.
template <typename Schema, typename F>
std::string refusal(F fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<Schema>();
  fill(root);
  return message_of([&] { wire::read(root.asReader()); });
}

VariableSpec sample_spec() {
  VariableSpec spec;
  spec.name = "tower/kernel";
  spec.shape = {2, 3};
  spec.initializer = Initializer::truncated_normal(0.5f, 2, 77);
  spec.aggregation = Aggregation::kMean;
  spec.synchronization = Synchronization::kOnRead;
  spec.trainable = false;
  return spec;
}

TEST(Wire, TensorsComeBackWithTheirValues) {
  for (const Tensor& value : {tensor({2, 2}, {1, -2, 3, 4}), ids_of({}), Tensor::scalar(true),
                              Tensor::scalar(1e-300), Tensor::zeros(DType::kBfloat16, {3, 0})}) {
    Tensor back = there_and_back<wire::TensorData>(value);
    EXPECT_EQ(back.type(), value.type());
    EXPECT_EQ(std::memcmp(back.raw(), value.raw(), value.bytes()), 0);
  }
  Tensor texts =
      there_and_back<wire::TensorData>(Tensor::strings({2, 1}, {std::string("a\0b", 3), ""}));
  EXPECT_EQ(texts.shape(), (Shape{2, 1}));
  EXPECT_EQ(texts.string_values()[0], std::string("a\0b", 3));
}

TEST(Wire, VariableSpecsComeBack) {
  VariableSpec spec = sample_spec(), back = there_and_back<wire::VariableSpec>(spec);
  EXPECT_EQ(back.name, spec.name);
  EXPECT_EQ(back.shape, spec.shape);
  EXPECT_EQ(back.initializer.kind, spec.initializer.kind);
  EXPECT_EQ(back.initializer.b, 2);
  EXPECT_EQ(back.initializer.seed, 77u);
  EXPECT_EQ(back.aggregation, spec.aggregation);
  EXPECT_EQ(back.synchronization, spec.synchronization);
  EXPECT_FALSE(back.trainable);
  EXPECT_FALSE(back.hashed);
  spec.hashed = true;
  EXPECT_TRUE(there_and_back<wire::VariableSpec>(spec).hashed);
  spec.hashed = false;

  spec.initializer = Initializer::from(tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(there_and_back<wire::VariableSpec>(spec).initializer.value.values<float>()[5], 6);
}

TEST(Wire, RulesAndElementsComeBack) {
  UpdateRule adam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
  EXPECT_EQ(there_and_back<wire::UpdateRule>(adam), adam);
  ElementSpec spec{{{"x", floats({kAny, 4})}, {"y", ints({kAny})}}, "y"};
  EXPECT_EQ(there_and_back<wire::ElementSpec>(spec), spec);
}

TEST(Wire, ARuleWithConstantsOutOfRangeIsRefused) {
  auto rule_with = [](cairn::UpdateRule rule) {
    return refusal<wire::UpdateRule>(
        [&](wire::UpdateRule::Builder out) { wire::write(out, rule); });
  };
  EXPECT_THAT(rule_with({RuleKind::kAdam, {1, 0.9f, 0}}),
              AllOf(HasSubstr("adam"), HasSubstr("beta_1"), HasSubstr("[0, 1)")));
  EXPECT_THAT(rule_with({RuleKind::kRmsProp, {0.9f, NAN}}),
              AllOf(HasSubstr("rmsprop"), HasSubstr("finite")));
  EXPECT_THAT(rule_with({RuleKind::kMomentum, {-0.5f}}), HasSubstr("momentum"));
}

TEST(Wire, ABorrowedTensorRefersToTheMessage) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::TensorData>();
  wire::write(root, tensor({2}, {1, 2}));
  auto owner = std::make_shared<int>();
  Tensor borrowed = wire::read(root.asReader(), owner);
  EXPECT_EQ(reinterpret_cast<const kj::byte*>(borrowed.raw()), root.asReader().getData().begin());
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(Wire, WhatASenderMayNotSayIsRefused) {
  auto spec_with = [](auto change) {
    return refusal<wire::VariableSpec>([&](wire::VariableSpec::Builder out) {
      wire::write(out, sample_spec());
      change(out);
    });
  };
  EXPECT_THAT(spec_with([](auto out) { out.getType().setDtype(99); }), HasSubstr("dtype"));
  EXPECT_THAT(spec_with([](auto out) { out.setAggregation(9); }), HasSubstr("aggregation"));
  EXPECT_THAT(spec_with([](auto out) { out.getInitializer().setKind(6); }),
              HasSubstr("initializer"));
  EXPECT_THAT(spec_with([](auto out) { out.setName(""); }), HasSubstr("no name"));
  EXPECT_THAT(spec_with([](auto out) { out.setName(std::string(5000, 'x')); }),
              HasSubstr("5000 bytes"));
  EXPECT_THAT(spec_with([](auto out) { out.getType().getShape().initDims(17); }),
              HasSubstr("rank 17"));
  EXPECT_THAT(spec_with([](auto out) { out.getType().getShape().getDims().set(0, -2); }),
              HasSubstr("-2"));
  EXPECT_THAT(spec_with([](auto out) {
                auto dims = out.getType().getShape().getDims();
                dims.set(0, wire::kElementsMax);
                dims.set(1, 1024);
              }),
              HasSubstr("too large"));
  EXPECT_THAT(refusal<wire::UpdateRule>([](auto out) { out.setKind(200); }),
              HasSubstr("update rule"));
  EXPECT_THAT(refusal<wire::ElementSpec>([](auto out) { out.setLabel("y"); }), HasSubstr("\"y\""));
}

TEST(Wire, ATensorThatClaimsMoreThanItBringsIsRefusedBeforeMemoryIsAskedFor) {
  auto claim = [](Tensor sent, std::vector<std::int64_t> dims) {
    return refusal<wire::TensorData>([&](wire::TensorData::Builder out) {
      wire::write(out, sent);
      auto list = out.getType().getShape().initDims(static_cast<unsigned>(dims.size()));
      for (unsigned i = 0; i < list.size(); ++i) list.set(i, dims[i]);
    });
  };
  EXPECT_THAT(claim(tensor({2}, {1, 2}), {1 << 30}), HasSubstr("8 bytes came"));
  EXPECT_THAT(claim(tensor({2}, {1, 2}), {1ll << 40, 1ll << 40}), HasSubstr("too large"));
  EXPECT_THAT(claim(tensor({2}, {1, 2}), {-1}), HasSubstr("unknown dimension"));
  EXPECT_THAT(claim(Tensor::strings({1}, {"x"}), {1 << 30}), HasSubstr("1 strings came"));
  auto not_a_bool = [](wire::TensorData::Builder out) {
    wire::write(out, Tensor::scalar(true));
    out.getData()[0] = 2;
  };
  EXPECT_THAT(refusal<wire::TensorData>(not_a_bool), HasSubstr("a bool of 2"));
}

}  // namespace
}  // namespace cairn
