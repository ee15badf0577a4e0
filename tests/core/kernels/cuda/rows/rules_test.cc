// The update rules of CUDA devices against those of the CPU, on the same blocks.
#include "core/kernels/cuda/rows/rules.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "core/base/error.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/some_rules.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Every kind, with each of its switches off and on.
std::vector<UpdateRule> optimizers() {
  return {{RuleKind::kSgd, {}},
          {RuleKind::kMomentum, {0.9f, 0}},
          {RuleKind::kMomentum, {0.9f, 1}},
          {RuleKind::kMomentumTable, {0.9f, 0}},
          {RuleKind::kMomentumTable, {0.8f, 1}},
          {RuleKind::kAdagrad, {0.1f, 1e-7f, 0}},
          {RuleKind::kAdagrad, {0.1f, 1e-7f, 1}},
          {RuleKind::kRowwiseAdagrad, {0.1f, 1e-7f}},
          {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
          {RuleKind::kAdam, {0.9f, 0.999f, 1e-7f, 0.1f, 0.001f}},
          {RuleKind::kLazyAdam, {0.9f, 0.999f, 1e-7f}},
          {RuleKind::kAmsgrad, {0.9f, 0.99f, 1e-7f}},
          {RuleKind::kAdamax, {0.9f, 0.99f, 1e-7f, 0.1f}},
          {RuleKind::kAdamaxTable, {0.9f, 0.99f, 1e-7f}},
          {RuleKind::kNadam, {0.9f, 0.999f, 1e-7f, 0.004f, 0}},
          {RuleKind::kNadam, {0.9f, 0.999f, 1e-7f, 0.004f, 1}},
          {RuleKind::kRmsProp, {0.9f, 1e-7f, 0}},
          {RuleKind::kRmsProp, {0.9f, 1e-7f, 1, 0.1f}},
          {RuleKind::kRmsPropCentered, {0.9f, 1e-3f, 0}},
          {RuleKind::kRmsPropCentered, {0.9f, 1e-3f, 1}},
          {RuleKind::kRmsPropMomentum, {0.9f, 1e-7f, 0.8f}},
          {RuleKind::kRmsPropMomentumTable, {0.9f, 1e-7f, 0.8f}},
          {RuleKind::kRmsPropCenteredMomentum, {0.9f, 1e-3f, 0.8f}},
          {RuleKind::kRmsPropCenteredMomentumTable, {0.9f, 1e-3f, 0.8f}},
          {RuleKind::kAdadelta, {0.95f, 1e-6f, 0}},
          {RuleKind::kAdadeltaTable, {0.95f, 1e-6f, 0.05f}},
          {RuleKind::kFtrl, {-0.5f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}},
          {RuleKind::kFtrl, {-0.7f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}},
          {RuleKind::kFtrlTable, {-0.5f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}},
          {RuleKind::kFtrlTable, {-0.7f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}},
          {RuleKind::kLion, {0.9f, 0.99f}},
          {RuleKind::kLionTable, {0.9f, 0.99f}}};
}

constexpr RuleKind kAssignments[] = {
    RuleKind::kAssign,    RuleKind::kAssignAdd, RuleKind::kAssignSub, RuleKind::kAssignMul,
    RuleKind::kAssignDiv, RuleKind::kAssignMin, RuleKind::kAssignMax};

// How rows and slots lie: `first` elements before the first row.
struct Layout {
  std::string_view name;
  std::int64_t stride, slot_offset, first, elements;
};

std::vector<Layout> layouts(std::int64_t rows, std::int64_t dim, std::int64_t slots) {
  const std::int64_t wide = (dim + 3) / 4 * 4, planes = slots + 1, all = rows * dim,
                     wide_all = (all + 3) / 4 * 4;
  return {{"slots beside the row", dim * planes, dim, 0, all * planes},
          {"the same in steps of 16 bytes", wide * planes + 4, wide, 0, rows * (wide * planes + 4)},
          {"slots in planes", dim, all, 0, all * planes},
          {"planes in steps of 16 bytes", dim, wide_all, 0, wide_all * planes},
          {"planes at an odd address", dim, wide_all, 1, 1 + wide_all * planes}};
}

enum class Naming {
  kEveryRowInOrder,
  kSomeRows,
  kRowsAndGaps,
  kEveryRowShuffled,
  kNoRow,
  kNoRowNoAddress
};

// A block on the fake device, and the same on the host, under one rule.
template <typename T>
class TwoBlocks {
 public:
  TwoBlocks(const UpdateRule& rule, std::int64_t rows, std::int64_t dim, const Layout& layout)
      : rule_(rule), layout_(layout), rows_(rows), dim_(dim) {
    host_.resize(static_cast<std::size_t>(layout.elements));
    fill(host_);
    const std::vector<SlotSpec> slots = rule_slots(rule);
    for (std::size_t k = 0; k < slots.size(); ++k)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < slot_width(rule.kind, dim); ++j)
          host_[static_cast<std::size_t>(layout.first + r * layout.stride + j) +
                (k + 1) * static_cast<std::size_t>(layout.slot_offset)] =
              static_cast<T>(slots[k].initial_value);
    device_ = sent(host_);
    run_ = cuda::prepare_rule(queue_, rule, DTypeOf<T>::value, rows);
  }

  void update(Naming naming, const RuleInputs& inputs) {
    std::vector<std::int64_t> numbers = named(naming);
    const bool dense = naming == Naming::kEveryRowInOrder;
    const std::int64_t count = dense ? rows_ : std::ssize(numbers);
    std::vector<T> values(static_cast<std::size_t>(count * dim_));
    fill(values);
    const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
    if (dense)
      apply_rule_dense(rule_, inputs, block(host_.data()), bytes);
    else
      apply_rule(rule_, inputs, block(host_.data()), numbers, bytes);
    if (naming == Naming::kRowsAndGaps) leave_gaps(numbers, values);
    const auto there = sent(values), names = sent(numbers),
               rates = sent(std::vector<RuleRates>{fold_rates(rule_, inputs)});
    const bool address = naming != Naming::kEveryRowInOrder && naming != Naming::kNoRowNoAddress;
    run_(block(device_->as<T>()), rates->template as<RuleRates>(),
         address ? names->template as<std::int64_t>() : nullptr,
         dense ? rows_ : std::ssize(numbers), there->data());
  }

  // The largest difference, relative to numbers above 1; of the whole memory, gaps included.
  double difference() {
    std::vector<T> back(host_.size());
    queue_.driver().copy(queue_.stream(), Device::Direction::kOut,
                         reinterpret_cast<std::byte*>(back.data()), device_->data(),
                         back.size() * sizeof(T));
    queue_.wait();
    double largest = 0;
    for (std::size_t i = 0; i < back.size(); ++i) {
      const auto want = static_cast<double>(host_[i]), got = static_cast<double>(back[i]);
      if (!std::isfinite(want)) return std::numeric_limits<double>::infinity();
      largest = std::max(
          largest, host_[i] == back[i] ? 0 : std::abs(want - got) / std::max(1.0, std::abs(want)));
      if (std::isnan(got)) return got;
    }
    return largest;
  }
  const testing::FakeDriver& driver() const { return driver_; }

 private:
  RowBlock block(T* memory) const {
    return {DTypeOf<T>::value,
            reinterpret_cast<std::byte*>(memory + layout_.first),
            rows_,
            dim_,
            layout_.stride,
            layout_.slot_offset};
  }
  template <typename U>
  std::shared_ptr<cuda::Memory> sent(const std::vector<U>& from) {
    auto made = queue_.memory(from.size() * sizeof(U));
    queue_.driver().copy(queue_.stream(), Device::Direction::kIn, made->data(),
                         reinterpret_cast<const std::byte*>(from.data()), from.size() * sizeof(U));
    return made;
  }
  std::vector<std::int64_t> named(Naming naming) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows_));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), random_);
    const bool some = naming == Naming::kSomeRows || naming == Naming::kRowsAndGaps;
    if (some) numbers.resize(numbers.size() / 2);
    if (!some && naming != Naming::kEveryRowShuffled) numbers.clear();
    return numbers;
  }
  // Each row is followed by a number that names none, and by values for it.
  void leave_gaps(std::vector<std::int64_t>& numbers, std::vector<T>& values) {
    for (std::int64_t i = std::ssize(numbers); i > 0; --i) {
      numbers.insert(numbers.begin() + i, -1);
      values.insert(values.begin() + i * dim_, static_cast<std::size_t>(dim_), T{77});
    }
  }
  // Integers of all sizes; floats about 1, one in seven of them 0.
  void fill(std::vector<T>& values) {
    for (T& value : values) {
      if constexpr (std::is_floating_point_v<T>) {
        value =
            static_cast<T>(random_() % 7 == 0 ? 0 : static_cast<float>(random_()) * 0x1p-31f - 1);
        if (rule_.kind == RuleKind::kAssignDiv) value += 2;
      } else {
        value = static_cast<T>((std::uint64_t{random_()} << 32 | random_()) >> random_() % 64);
      }
    }
  }

  UpdateRule rule_;
  Layout layout_;
  std::int64_t rows_, dim_;
  std::mt19937 random_{7};
  testing::FakeDriver driver_;
  cuda::Queue queue_{driver_, cpu_device()};
  std::vector<T> host_;
  std::shared_ptr<cuda::Memory> device_;
  cuda::RuleRun run_;
};

// A few updates of every shape in a row, so that what one leaves behind is seen by the next.
template <typename T>
void expect_agreement(const UpdateRule& rule, double tolerance) {
  for (const std::int64_t dim : {1, 3, 4, 7, 32, 130})
    for (const std::int64_t rows : {1, 9})
      for (const Layout& layout : layouts(rows, dim, std::ssize(rule_slots(rule)))) {
        TwoBlocks<T> blocks(rule, rows, dim, layout);
        std::int64_t t = 0;
        for (const Naming naming :
             {Naming::kSomeRows, Naming::kEveryRowInOrder, Naming::kSomeRows, Naming::kNoRow,
              Naming::kNoRowNoAddress, Naming::kEveryRowShuffled, Naming::kRowsAndGaps,
              Naming::kSomeRows}) {
          ++t;
          blocks.update(naming, {0.1f / static_cast<float>(t), t});
          EXPECT_LE(blocks.difference(), tolerance)
              << rule_name(rule.kind) << " of " << dtype_name(DTypeOf<T>::value) << "[" << rows
              << ", " << dim << "], " << layout.name << ", update " << t;
        }
      }
}

// To the bit, except where the squares of a row are added in another order.
TEST(CudaRules, EveryOptimizerChangesABlockAsTheCpuDoes) {
  for (const UpdateRule& rule : optimizers()) {
    verify_rule(rule);
    expect_agreement<float>(rule, rule.kind == RuleKind::kRowwiseAdagrad ? 1e-6 : 0);
  }
}

TEST(CudaRules, ARuleOfAProgramsOwnChangesABlockAsOnTheCpu) {
  // Elementary functions round otherwise.
  for (const UpdateRule& rule : testing::own_rules()) expect_agreement<float>(rule, 1e-6);
}

TEST(CudaRules, AssignmentsChangeABlockAsTheCpuDoes) {
  for (const RuleKind kind : kAssignments) {
    expect_agreement<float>({kind, {}}, 0);
    if (kind == RuleKind::kAssignDiv) continue;
    expect_agreement<std::int32_t>({kind, {}}, 0);
    expect_agreement<std::int64_t>({kind, {}}, 0);
    expect_agreement<std::uint8_t>({kind, {}}, 0);
  }
  expect_agreement<double>({RuleKind::kAssign, {}}, 0);
}

TEST(CudaRules, NoKindIsLeftOut) {
  std::set<RuleKind> kinds(std::begin(kAssignments), std::end(kAssignments));
  for (const UpdateRule& rule : optimizers()) kinds.insert(rule.kind);
  kinds.insert(RuleKind::kCustom);  // ARuleOfAProgramsOwn...
  EXPECT_EQ(kinds.size(), std::size_t{kRuleKindCount});
}

TEST(CudaRules, ADtypeThatARuleCannotChangeIsRefusedAsOnTheCpu) {
  testing::FakeDriver driver;
  cuda::Queue queue(driver, cpu_device());
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
      return "accepted";
    } catch (const InvalidArgumentError& e) {
      return e.what();
    }
  };
  for (int kind = 0; kind < kRuleKindCount; ++kind)
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                              DType::kUint8, DType::kBool}) {
      const UpdateRule rule{static_cast<RuleKind>(kind), {0, 0.5f}};
      EXPECT_EQ(refusal([&] { cuda::prepare_rule(queue, rule, dtype); }), refusal([&] {
                  apply_rule(rule, {0.1f, 1}, {.dtype = dtype}, {}, nullptr);
                }));
    }
  EXPECT_THAT(
      [&] {
        cuda::prepare_rule(queue, {RuleKind::kSgd, {}}, DType::kInt32);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("int32")));
}

// One row with its slots beside it, and what an update of it needs, on the fake device.
struct CudaRulesOnOneRow : ::testing::Test {
  testing::FakeDriver driver;
  cuda::Queue queue{driver, cpu_device()};
  std::shared_ptr<cuda::Memory> memory = queue.memory(64), rates = queue.memory(64),
                                number = queue.memory(8), value = queue.memory(4);

  template <typename T>
  void send(const cuda::Memory& to, const std::vector<T>& from) {
    driver.copy(queue.stream(), Device::Direction::kIn, to.data(),
                reinterpret_cast<const std::byte*>(from.data()), from.size() * sizeof(T));
  }
  RowBlock block(std::int64_t rows, std::int64_t planes) const {
    return {DType::kFloat32, memory->data(), rows, 1, planes, 1};
  }
};

TEST_F(CudaRulesOnOneRow, ARowThatWasNeverNamedStaysFiniteWithoutEpsilon) {
  for (const RuleKind kind :
       {RuleKind::kAdadeltaTable, RuleKind::kRmsProp, RuleKind::kRmsPropMomentumTable}) {
    const UpdateRule rule{kind, {0.9f, 0}};
    const auto planes = std::ssize(rule_slots(rule)) + 1;
    send(*memory, std::vector<float>{1, 0, 0, 1, 0, 0});
    send(*rates, std::vector<RuleRates>{fold_rates(rule, {0.1f, 1})});
    send(*number, std::vector<std::int64_t>{1});
    send(*value, std::vector<float>{0.5f});
    cuda::prepare_rule(queue, rule, DType::kFloat32)(block(2, planes), rates->as<RuleRates>(),
                                                     number->as<std::int64_t>(), 1, value->data());
    queue.wait();
    EXPECT_EQ(*memory->as<float>(), 1.0f) << rule_name(kind);
  }
}

TEST_F(CudaRulesOnOneRow, ARecordedUpdateReadsItsRatesAnewAndAllocatesNothing) {
  const UpdateRule rule{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};
  std::vector<float> rows(6, 0.5f), gradient{0.25f};
  send(*memory, rows);
  send(*number, std::vector<std::int64_t>{1});
  send(*value, gradient);
  const cuda::RuleRun run = cuda::prepare_rule(queue, rule, DType::kFloat32, 2);
  const int allocations = driver.counts().allocations;
  const auto recording = driver.record_work(queue.stream(), [&] {
    run(block(2, 3), rates->as<RuleRates>(), number->as<std::int64_t>(), 1, value->data());
  });
  for (const RuleInputs inputs : {RuleInputs{0.1f, 1}, RuleInputs{0.05f, 2}, RuleInputs{0.2f, 3}}) {
    send(*rates, std::vector<RuleRates>{fold_rates(rule, inputs)});
    recording->replay(queue.stream());
    RowBlock host = block(2, 3);
    host.base = reinterpret_cast<std::byte*>(rows.data());
    apply_rule(rule, inputs, host, std::vector<std::int64_t>{1},
               reinterpret_cast<const std::byte*>(gradient.data()));
  }
  queue.wait();
  EXPECT_EQ(driver.counts().allocations, allocations);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(memory->as<float>()[i], rows[i], 1e-6f) << i;
}

TEST_F(CudaRulesOnOneRow, AnUpdateThatIsNotOrderedAfterTheRowsArrivalIsFound) {
  cuda::Queue other(driver, cpu_device());
  send(*memory, std::vector<float>{1});
  send(*value, std::vector<float>{1});
  const cuda::RuleRun run = cuda::prepare_rule(other, {RuleKind::kAssignAdd, {}}, DType::kFloat32);
  EXPECT_THAT([&] { run(block(1, 1), nullptr, nullptr, 1, value->data()); },
              ThrowsMessage<InternalError>(HasSubstr("a race")));
  queue.wait();
  run(block(1, 1), nullptr, nullptr, 1, value->data());
  EXPECT_EQ(*memory->as<float>(), 2.0f);
}

}  // namespace
}  // namespace cairn
