// How fake drivers sum values of several devices. Until the program has found out that all have
// begun a call, the values are of any contents, as they are on devices that are still summing.
//   Order  of ranks.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/driver.h"
#include "tests/core/kernels/cuda/fake_shares.h"

namespace cairn::testing {

// The members of one process.
class FakeSums {
 public:
  // `held`: the devices never end what they sum.
  static cuda::SumGroup make(std::size_t devices, const DeviceGroupPlace& place, bool held) {
    const auto size = place.spans() ? static_cast<std::size_t>(place.size) : devices;
    std::shared_ptr<FakeShares> shares;
    if (place.spans())
      shares = std::make_shared<SharesInFiles>(place.id);
    else
      shares = std::make_shared<SharesInMemory>();
    const auto group = std::make_shared<FakeSums>(size, std::move(shares), held);
    cuda::SumGroup made{{}, "by fake drivers"};
    for (std::size_t i = 0; i < devices; ++i)
      made.members.push_back(
          std::make_unique<Member>(group, static_cast<std::size_t>(place.first) + i));
    return made;
  }
  FakeSums(std::size_t size, std::shared_ptr<FakeShares> shares, bool held)
      : size_(size), shares_(std::move(shares)), held_(held) {}

 private:
  using Bytes = FakeShares::Bytes;
  using Share = FakeShares::Share;

  class Member final : public cuda::SumMember {
   public:
    Member(std::shared_ptr<FakeSums> group, std::size_t rank)
        : group_(std::move(group)), rank_(rank) {
      group_->shares_->join(rank_);
    }
    void all_reduce(cuda::Stream, std::span<const DeviceSum> sums) override {
      group_->require_alive();
      Share share;
      for (const DeviceSum& value : sums) {
        share.emplace_back(value.values, value.values + bytes_of(value));
        std::memset(value.values, 0xff, bytes_of(value));
      }
      group_->shares_->put(next_++, rank_, std::move(share));
      under_way_.emplace_back(sums.begin(), sums.end());
    }
    void all_have_begun() override {
      group_->require_alive();
      const std::vector<DeviceSum>& values = under_way_.front();
      const Share sums = group_->sums_of(told_, values);
      ++told_;
      for (std::size_t i = 0; i < sums.size(); ++i)
        std::memcpy(values[i].values, sums[i].data(), sums[i].size());
      under_way_.pop_front();
    }
    void require_well() override { group_->settle(); }
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

  // Devices would wait for one another for ever, or add what is not there, where sizes differ.
  Share sums_of(std::size_t number, const std::vector<DeviceSum>& values) {
    const std::vector<Share> shares = shares_->of_call(number, size_);
    CAIRN_CHECK(shares.size() == size_, "a call of the devices is finished that ", shares.size(),
                " of ", size_, " have begun: the device would wait for the others for ever");
    const auto same_size = [](const Bytes& a, const Bytes& b) { return a.size() == b.size(); };
    for (const Share& share : shares)
      CAIRN_CHECK(std::ranges::equal(share, shares[0], same_size),
                  "members sum values of different sizes");
    Share sums = shares[0];
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t rank = 1; rank < size_; ++rank)
        add(values[i].dtype, shares[rank][i], sums[i]);
      if (values[i].op == ReduceOp::kMean) divide(sums[i]);
    }
    return sums;
  }

  void abort() noexcept {
    const std::lock_guard hold(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  // Here, and not where the host waits for the stream, since a fake's work ends at once.
  void settle() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [this] { return aborted_ || !held_; });
    hold.unlock();
    require_alive();
  }
  void require_alive() const {
    const std::lock_guard hold(mutex_);
    if (aborted_) throw AbortedError("the group of devices was aborted");
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

  const std::size_t size_;  // of the group
  const std::shared_ptr<FakeShares> shares_;
  const bool held_;
  mutable std::mutex mutex_;  // guards what is below
  std::condition_variable changed_;
  bool aborted_ = false;
};

// A driver whose devices sum so, those of several processes too.
class SummingDriver : public cuda::Driver {
 public:
  // From now on it says so of groups that span processes; and it fails to join any.
  void set_sum_means(DeviceSumMeans means) { means_ = std::move(means); }
  void fail_joining(std::string why) { no_joining_ = std::move(why); }
  // Devices of groups that are joined from now on sum until they are aborted.
  void hold_sums() { held_ = true; }

  DeviceSumMeans sum_means() override { return means_; }
  std::string new_group_id() override { return SharesInFiles::new_folder(); }
  cuda::SumGroup join(std::span<cuda::Driver* const> drivers,
                      const DeviceGroupPlace& place) override {
    if (place.spans() && !no_joining_.empty()) throw InternalError(no_joining_);
    return FakeSums::make(drivers.size(), place, held_);
  }

 private:
  // A driver is one GPU.
  DeviceSumMeans means_{
      .by = "by fake drivers", .why_not = {}, .chip = str("process ", ::getpid(), " at ", this)};
  std::string no_joining_;
  bool held_ = false;
};

}  // namespace cairn::testing
