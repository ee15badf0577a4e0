// Rows in memory: where they lie, which of them are there, and that none of it shows in their
// values.
#include "core/rows/row_memory.h"

#include <gmock/gmock.h>

#include <numeric>

#include "core/base/random.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Floats = std::vector<float>;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kMany = RowLayout::kRowsBeside;
const UpdateRule kNoSlots{}, kAdagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}},
    kAdam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
    kLazyAdam{RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}},
    kRowwise{RuleKind::kRowwiseAdagrad, {0.1f, 1e-7f}};

VariableSpec spec_of(Shape shape, bool hashed = false) {
  VariableSpec spec;
  spec.name = "w";
  spec.shape = std::move(shape);
  spec.initializer = Initializer::uniform(-1, 1);
  spec.hashed = hashed;
  return spec;
}

RowMemory rows_of(const VariableSpec& spec, const UpdateRule& rule) {
  return {std::make_shared<const VariableSpec>(spec), rule, {0, spec.rows()}, 42};
}

Floats read(RowMemory& memory, const Ids& ids) {
  Floats out(ids.size() * static_cast<std::size_t>(memory.layout().dim));
  memory.read(memory.find(ids), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

void update(RowMemory& memory, const UpdateRule& rule, const Ids& ids, const Floats& values) {
  memory.update(rule, 0.1f, memory.make(memory.find(ids)),
                reinterpret_cast<const std::byte*>(values.data()));
}

// ---- layout ----

TEST(RowLayout, HasPlanesForWhatIsMostlyReadWhole) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{10 * kMany}, Shape{kMany - 1, 3}}) {
    const VariableSpec spec = spec_of(shape);
    const RowLayout layout(spec, kAdagrad, spec.rows());
    EXPECT_TRUE(layout.planes && layout.packed()) << shape.to_string();
    EXPECT_GE(layout.slot_offset, spec.rows() * spec.dim()) << shape.to_string();
    EXPECT_EQ(layout.slot_offset * 4 % 64, 0) << shape.to_string();
  }
}

TEST(RowLayout, PutsSlotsBesideTheRowsOfWhatIsMostlyReadByRows) {
  const RowLayout wide(spec_of({kMany, 32}), kAdagrad, kMany);
  EXPECT_FALSE(wide.planes);
  EXPECT_EQ(wide.slot_offset, 32);
  EXPECT_EQ(wide.stride, 64);
  // A part of few rows lies as the others of its variable do.
  EXPECT_FALSE(RowLayout(spec_of({kMany, 32}), kAdagrad, 10).planes);
}

TEST(RowLayout, ARowThatFitsInALineDoesNotCrossOne) {
  for (const auto& [dim, stride] : {std::pair{1, 2}, {3, 8}, {5, 16}, {8, 16}, {9, 18}})
    EXPECT_EQ(RowLayout(spec_of({kMany, dim}), kAdagrad, kMany).stride, stride) << dim;
}

TEST(RowLayout, PlanesAreNeitherForHashedRowsNorForSlotsOfAnotherWidth) {
  EXPECT_FALSE(RowLayout(spec_of({100, 4}, true), kAdagrad, 0).planes);
  const RowLayout rowwise(spec_of({100, 4}), kRowwise, 100);
  EXPECT_FALSE(rowwise.planes);
  EXPECT_EQ(rowwise.stride, 8);  // four parameters and one number, padded
  EXPECT_TRUE(RowLayout(spec_of({100}), kRowwise, 100).planes);
}

// ---- which are not here, and doing it ----

TEST(RowMemory, NamesTheRowsThatAreNotHereAndReadsThemAsTheyBegin) {
  RowMemory hashed = rows_of(spec_of({1000, 4}, true), kAdagrad),
            dense = rows_of(spec_of({1000, 4}), kAdagrad);
  const Ids ids{7, 900, 8};
  EXPECT_THAT(hashed.find(ids).absent, ElementsAre(0, 1, 2));
  EXPECT_THAT(dense.find(ids).absent, IsEmpty());
  EXPECT_EQ(read(hashed, ids), read(dense, ids));
  EXPECT_EQ(hashed.held(), 0);  // a reader makes no rows

  const Ids one{900};
  hashed.make(hashed.find(one));
  EXPECT_THAT(hashed.find(ids).absent, ElementsAre(0, 2));
  EXPECT_EQ(read(hashed, ids), read(dense, ids));
  EXPECT_EQ(hashed.held(), 1);
}

// Updates of random rows, of consecutive ones, and of rows that are there in part.
void train(RowMemory& memory, const UpdateRule& rule, std::uint64_t seed) {
  Random random(seed);
  for (int step = 0; step < 12; ++step) {
    Ids ids;
    for (std::int64_t row = 0; row < 200; ++row)
      if (step % 3 == 0 ? row >= 40 && row < 90 : random.below(8) == 0) ids.push_back(row);
    Floats values(ids.size() * static_cast<std::size_t>(memory.layout().dim));
    for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
    update(memory, rule, ids, values);
  }
}

TEST(RowMemory, WhereRowsLieDoesNotShowInTheirValues) {
  Ids all(200);
  std::iota(all.begin(), all.end(), 0);
  for (const std::int64_t dim : {1, 3, 16, 33})
    for (const UpdateRule& rule : {UpdateRule{RuleKind::kSgd, {}}, kAdagrad, kRowwise, kLazyAdam}) {
      RowMemory planes = rows_of(spec_of({200, dim}), rule),
                beside = rows_of(spec_of({kMany, dim}), rule),
                hashed = rows_of(spec_of({kMany, dim}, true), rule);
      for (RowMemory* memory : {&planes, &beside, &hashed}) train(*memory, rule, 5);
      EXPECT_EQ(read(planes, all), read(beside, all)) << rule_name(rule.kind) << " of " << dim;
      EXPECT_EQ(read(hashed, all), read(beside, all)) << rule_name(rule.kind) << " of " << dim;
    }
}

TEST(RowMemory, AWholeReadIsThatOfEveryRow) {
  for (const std::int64_t rows : {std::int64_t{200}, kMany}) {
    RowMemory memory = rows_of(spec_of({rows, 3}), kAdam);
    train(memory, kAdam, 1);
    Ids all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), 0);
    Floats whole(all.size() * 3);
    memory.read_all(reinterpret_cast<std::byte*>(whole.data()));
    EXPECT_EQ(whole, read(memory, all));
    EXPECT_EQ(memory.updates(), 12);
  }
}

TEST(RowMemory, AnUpdateOfEveryRowIsTheOneThatNamesThemAll) {
  for (const UpdateRule& rule : {kAdagrad, kAdam, kRowwise})
    for (const std::int64_t rows : {std::int64_t{200}, kMany}) {
      RowMemory named = rows_of(spec_of({rows, 2}), rule),
                whole = rows_of(spec_of({rows, 2}), rule);
      Ids all(static_cast<std::size_t>(rows));
      std::iota(all.begin(), all.end(), 0);
      const Floats values(all.size() * 2, 0.25f);
      update(named, rule, all, values);
      whole.update_all(rule, 0.1f, reinterpret_cast<const std::byte*>(values.data()));
      EXPECT_EQ(read(named, all), read(whole, all)) << rule_name(rule.kind);
    }
}

// ---- layout anew, saving ----

TEST(RowMemory, NewSlotsLeaveRowsAndTheirPlaces) {
  Ids all(200);
  std::iota(all.begin(), all.end(), 0);
  for (const VariableSpec& spec :
       {spec_of({200}), spec_of({200, 3}), spec_of({kMany, 3}), spec_of({kMany, 3}, true)})
    for (const UpdateRule& rule : {kAdagrad, kRowwise}) {
      RowMemory memory = rows_of(spec, kNoSlots), twin = rows_of(spec, rule);
      const UpdateRule add{RuleKind::kAssignAdd, {}};
      train(memory, add, 3);
      train(twin, add, 3);
      const Floats before = read(memory, all);
      memory.set_rule(rule);
      EXPECT_EQ(read(memory, all), before) << spec.shape.to_string();
      for (RowMemory* one : {&memory, &twin}) train(*one, rule, 4);
      EXPECT_EQ(read(memory, all), read(twin, all)) << spec.shape.to_string();
    }
}

TEST(RowMemory, RowsGoOnAfterARestoreAsIfNothingHadHappened) {
  Ids all(200);
  std::iota(all.begin(), all.end(), 0);
  for (const VariableSpec& spec :
       {spec_of({200, 3}), spec_of({kMany, 3}), spec_of({kMany, 3}, true)})
    for (const UpdateRule& rule : {kAdagrad, kRowwise}) {
      RowMemory memory = rows_of(spec, rule), restored = rows_of(spec, rule);
      train(memory, rule, 3);
      const std::size_t row_bytes = memory.layout().saved_row_bytes();
      std::vector<std::byte> saved(all.size() * row_bytes);
      memory.save(memory.make(memory.find(all)).at, saved.data());
      const Places to = restored.make(restored.find(all));
      for (std::size_t i = 0; i < all.size(); ++i)
        restored.restore(to.at[i], saved.data() + i * row_bytes, memory.layout().slots);
      for (RowMemory* one : {&memory, &restored}) train(*one, rule, 4);
      EXPECT_EQ(read(restored, all), read(memory, all)) << spec.shape.to_string();
    }
}

TEST(RowMemory, AResetTakesEverythingBackToItsBeginning) {
  for (const VariableSpec& spec : {spec_of({200, 3}), spec_of({kMany, 3}, true)}) {
    RowMemory memory = rows_of(spec, kAdagrad), fresh = rows_of(spec, kAdagrad);
    train(memory, kAdagrad, 3);
    memory.reset();
    EXPECT_EQ(memory.held(), fresh.held());
    EXPECT_EQ(memory.updates(), 0);
    for (RowMemory* one : {&memory, &fresh}) train(*one, kAdagrad, 4);
    EXPECT_EQ(read(memory, {0, 3, 60}), read(fresh, {0, 3, 60}));
  }
}

}  // namespace
}  // namespace cairn
