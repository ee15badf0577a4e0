// How fake drivers sum values of several devices: when the last member has enqueued its part of a
// call. Up to then, and until the program has found out that all have begun, the values are of any
// contents, as they are on devices that are still summing.
//   Order  of ranks.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/driver.h"

namespace cairn::testing {

class FakeSums {
 public:
  using Bytes = std::vector<std::byte>;
  struct Call {
    std::vector<std::vector<Bytes>> shares;  // by rank, by value; empty: has not begun it
    std::size_t begun = 0, told = 0;
    std::vector<Bytes> sums;  // once all have begun; empty: their values differ in size
  };

  static cuda::SumGroup make(std::size_t size) {
    auto group = std::make_shared<FakeSums>(size);
    cuda::SumGroup made{{}, "by fake drivers"};
    for (std::size_t rank = 0; rank < size; ++rank)
      made.members.push_back(std::make_unique<Member>(group, rank));
    return made;
  }
  explicit FakeSums(std::size_t size) : size_(size) {}

 private:
  class Member final : public cuda::SumMember {
   public:
    Member(std::shared_ptr<FakeSums> group, std::size_t rank)
        : group_(std::move(group)), rank_(rank) {}
    void all_reduce(cuda::Stream, std::span<const DeviceSum> sums) override {
      group_->begin(rank_, next_++, sums);
      under_way_.emplace_back(sums.begin(), sums.end());
    }
    void all_have_begun() override {
      const std::vector<Bytes> found = group_->sums_of(told_++);
      for (std::size_t i = 0; i < found.size(); ++i)
        std::memcpy(under_way_.front()[i].values, found[i].data(), found[i].size());
      under_way_.pop_front();
    }
    void abort() noexcept override { group_->abort(); }

   private:
    const std::shared_ptr<FakeSums> group_;
    const std::size_t rank_;
    std::size_t next_ = 0, told_ = 0;
    std::deque<std::vector<DeviceSum>> under_way_;
  };

  static std::size_t bytes_of(const DeviceSum& sum) {
    return static_cast<std::size_t>(sum.elements) * dtype_bytes(sum.dtype);
  }

  void begin(std::size_t rank, std::size_t number, std::span<const DeviceSum> values) {
    const std::lock_guard hold(mutex_);
    require_alive();
    if (number - first_ == calls_.size()) calls_.emplace_back().shares.resize(size_);
    Call& call = calls_[number - first_];
    for (const DeviceSum& value : values) {
      call.shares[rank].emplace_back(value.values, value.values + bytes_of(value));
      std::memset(value.values, 0xff, bytes_of(value));
    }
    if (++call.begun == size_) add(call, values);
  }

  std::vector<Bytes> sums_of(std::size_t number) {
    const std::lock_guard hold(mutex_);
    require_alive();
    Call& call = calls_.at(number - first_);
    CAIRN_CHECK(call.begun == size_, "a call of the devices is finished that ", call.begun, " of ",
                size_, " have begun: the device would wait for the others for ever");
    CAIRN_CHECK(call.sums.size() == call.shares[0].size(), "members sum values of different sizes");
    std::vector<Bytes> sums = call.sums;
    if (++call.told == size_) {  // of all, the oldest
      calls_.pop_front();
      ++first_;
    }
    return sums;
  }

  void abort() noexcept {
    const std::lock_guard hold(mutex_);
    aborted_ = true;
  }
  void require_alive() const {
    if (aborted_) throw AbortedError("the group of devices was aborted");
  }

  // Devices would wait for one another for ever, or add what is not there, where sizes differ.
  void add(Call& call, std::span<const DeviceSum> values) const {
    const auto same_size = [](const Bytes& a, const Bytes& b) { return a.size() == b.size(); };
    for (const std::vector<Bytes>& share : call.shares)
      if (!std::ranges::equal(share, call.shares[0], same_size)) return;
    call.sums = call.shares[0];
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t rank = 1; rank < size_; ++rank)
        add(values[i].dtype, call.shares[rank][i], call.sums[i]);
      if (values[i].op == ReduceOp::kMean) divide(call.sums[i]);
    }
  }
  template <typename T>
  static void add_as(const Bytes& from, Bytes& to) {
    for (std::size_t at = 0; at < to.size(); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, to.data() + at, sizeof a);
      std::memcpy(&b, from.data() + at, sizeof b);
      a += b;
      std::memcpy(to.data() + at, &a, sizeof a);
    }
  }
  static void add(DType dtype, const Bytes& from, Bytes& to) {
    switch (dtype) {
      case DType::kFloat32: return add_as<float>(from, to);
      case DType::kInt32: return add_as<std::uint32_t>(from, to);
      case DType::kInt64: return add_as<std::uint64_t>(from, to);
      default: CAIRN_CHECK(false, dtype_name(dtype), " has no sum");
    }
  }
  void divide(Bytes& sum) const {
    for (std::size_t at = 0; at < sum.size(); at += sizeof(float)) {
      float x;
      std::memcpy(&x, sum.data() + at, sizeof x);
      x /= static_cast<float>(size_);
      std::memcpy(sum.data() + at, &x, sizeof x);
    }
  }

  const std::size_t size_;
  std::mutex mutex_;  // guards what is below
  std::deque<Call> calls_;
  std::size_t first_ = 0;  // the number of the first of them
  bool aborted_ = false;
};

}  // namespace cairn::testing
