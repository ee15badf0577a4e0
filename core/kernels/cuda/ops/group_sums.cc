#include "core/kernels/cuda/ops/group_sums.h"

#include <deque>
#include <utility>

#include "core/base/error.h"

namespace cairn::cuda {
namespace {

std::size_t bytes_of(const DeviceSum& sum) {
  return static_cast<std::size_t>(sum.elements) * dtype_bytes(sum.dtype);
}

class QueueMember final : public DeviceMember {
 public:
  QueueMember(Driver& driver, std::unique_ptr<SumMember> member, SumReach reach)
      : driver_(driver),
        member_(std::move(member)),
        reach_(reach),
        stream_(driver.make_stream()),
        ready_(driver.make_event()) {}
  ~QueueMember() override {
    if (!begun_.empty()) abort();
    try {
      driver_.wait(stream_);
    } catch (const Error&) {
      // A device that has failed has nothing under way.
    }
    for (const Call& call : begun_) driver_.destroy(call.ended);
    for (const Event event : free_) driver_.destroy(event);
    driver_.destroy(ready_);
    driver_.destroy(stream_);
  }
  QueueMember(const QueueMember&) = delete;
  QueueMember& operator=(const QueueMember&) = delete;

  // Updates on streams beside the queue's own may make values that are summed.
  void begin(Device& opened, std::vector<DeviceSum> sums) override {
    Queue& queue = queue_of(opened);
    queue.join();
    driver_.record(ready_, queue.stream());
    driver_.wait_for(stream_, ready_);
    announce(sums);
    if (free_.empty()) free_.push_back(driver_.make_event());
    begun_.push_back({free_.back(), std::move(sums)});
    free_.pop_back();
    member_->all_reduce(stream_, begun_.back().sums);
    driver_.record(begun_.back().ended, stream_);
  }

  void finish(Device& opened) override {
    CAIRN_CHECK(!begun_.empty(), "every call of the group was finished");
    Queue& queue = queue_of(opened);
    member_->all_have_begun();
    const Call& call = begun_.front();
    driver_.wait_for(queue.stream(), call.ended);
    for (const DeviceSum& sum : call.sums) queue.written(sum.values, bytes_of(sum));
    free_.push_back(call.ended);
    begun_.pop_front();
  }

  // If a process is lost, an abort ends the stream's wait; require_well() raises the error.
  void settle() override {
    if (reach_ == SumReach::kThisProcess) return;
    CAIRN_CHECK(begun_.empty(), "calls of the group are not finished");
    driver_.wait(stream_);
    member_->require_well();
  }

  void abort() noexcept override { member_->abort(); }

 private:
  struct Call {
    Event ended;
    std::vector<DeviceSum> sums;
  };

  static Queue& queue_of(Device& opened) {
    auto* const owner = dynamic_cast<QueueOwner*>(&opened);
    CAIRN_CHECK(owner != nullptr, opened.name(), " was not opened by a CUDA device");
    return owner->queue();
  }
  void announce(const std::vector<DeviceSum>& sums) {
    if (!driver_.watches()) return;
    std::vector<Range> values;
    for (const DeviceSum& sum : sums) values.push_back({sum.values, bytes_of(sum)});
    driver_.announce(stream_, values, values);
  }

  Driver& driver_;
  const std::unique_ptr<SumMember> member_;
  const SumReach reach_;
  const Stream stream_;
  const Event ready_;
  std::deque<Call> begun_;   // and not finished
  std::vector<Event> free_;  // of calls that were
};

}  // namespace

std::unique_ptr<DeviceMember> make_device_member(Driver& driver, std::unique_ptr<SumMember> member,
                                                 SumReach reach) {
  return std::make_unique<QueueMember>(driver, std::move(member), reach);
}

}  // namespace cairn::cuda
