#include "core/kernels/cuda/runtime/queue.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/ahead.h"

namespace cairn::cuda {
namespace {

std::byte* allocated(Driver& driver, Stream stream, std::size_t bytes, Use use) {
  try {
    return driver.allocate(bytes, stream);
  } catch (const ResourceExhaustedError& error) {
    throw ResourceExhaustedError(exhausted_text(error.what(), use, driver.use()));
  }
}

}  // namespace

Memory::Memory(Driver& driver, Stream stream, std::size_t bytes, Use use)
    : driver_(driver),
      stream_(stream),
      bytes_(std::max<std::size_t>(bytes, 1)),
      use_(use),
      data_(allocated(driver, stream, bytes_, use)) {
  driver_.use().add(use_, bytes_);
}

Memory::~Memory() {
  driver_.use().remove(use_, bytes_);
  driver_.release(data_, stream_);
}

Queue::Queue(Driver& driver, Device& cpu)
    : driver_(driver),
      cpu_(cpu),
      stream_(driver.make_stream()),
      current_(stream_),
      staging_(driver),
      pinned_(driver.host_ranges()) {
  record_ = memory(sizeof(FaultRecord));
  driver_.fill_zero(stream_, record_->data(), sizeof(FaultRecord));
  any_fault_ = reinterpret_cast<int*>(driver_.allocate_pinned(sizeof(int)));
  *any_fault_ = 0;
}

Queue::~Queue() {
  try {
    driver_.wait(stream_);
  } catch (const Error&) {
    // A device that has failed has nothing under way.
  }
  kept_.clear();
  ahead_ = nullptr;
  copies_.clear();
  record_ = nullptr;
  for (const SideStream& side : sides_) {
    driver_.destroy(side.stream);
    driver_.destroy(side.done);
  }
  if (forked_ != nullptr) driver_.destroy(forked_);
  driver_.release_pinned(reinterpret_cast<std::byte*>(any_fault_));
  driver_.destroy(stream_);
}

std::shared_ptr<Memory> Queue::shared_scratch(std::size_t bytes) {
  auto known = shared_scratch_.lock();
  if (known != nullptr && known->bytes() >= bytes) return known;
  known = memory(bytes);
  shared_scratch_ = known;
  return known;
}

std::shared_ptr<const FaultSite> Queue::add_fault(Describe describe) {
  const std::int32_t site = ++sites_;
  faults_.emplace(site, std::move(describe));
  return {new FaultSite{record_->as<FaultRecord>(), any_fault_, site},
          [this](const FaultSite* gone) {
            faults_.erase(gone->site);
            delete gone;
          }};
}

const std::byte* Queue::copied(const std::byte* from, const MatrixCopy& how,
                               std::shared_ptr<Memory>& scratch) {
  for (const Copy& one : copies_)
    if (one.source.begin == from && one.how == how) return one.memory->data();
  if (scratch == nullptr) scratch = memory(how.to_bytes());
  // The scratch may hold what was made of another source.
  std::erase_if(copies_, [&](const Copy& one) { return one.memory == scratch; });
  copy_matrix(*this, how, from, scratch->data());
  copies_.push_back({{from, how.from_bytes()}, how, scratch});
  return scratch->data();
}

void Queue::written(const std::byte* begin, std::size_t bytes) {
  std::erase_if(copies_, [&](const Copy& one) {
    return one.source.begin < begin + bytes && begin < one.source.begin + one.source.bytes;
  });
}

// Sides take turns, so that work which waits for memory most of the time fills the device.
Stream Queue::fork() {
  if (forked_ == nullptr) forked_ = driver_.make_event();
  if (next_side_ == sides_.size())
    sides_.push_back({driver_.make_stream(), driver_.make_event(), false});
  SideStream& side = sides_[next_side_];
  next_side_ = (next_side_ + 1) % kSides;
  side.used = true;
  driver_.record(forked_, stream_);
  driver_.wait_for(side.stream, forked_);
  return side.stream;
}

void Queue::join() {
  for (SideStream& side : sides_) {
    if (!std::exchange(side.used, false)) continue;
    driver_.record(side.done, side.stream);
    driver_.wait_for(stream_, side.done);
  }
}

void Queue::copy_in(std::byte* to, const std::byte* from, std::size_t bytes,
                    const std::shared_ptr<const void>& keeper) {
  const bool sent = ahead_ != nullptr && ahead_->take(current_, to, from, bytes);
  if (!sent && go_straight(from, bytes, keeper))
    driver_.copy(current_, Device::Direction::kIn, to, from, bytes);
  else if (!sent)
    staging_.send(current_, to, from, bytes);
  written(to, bytes);
}

void Queue::begin_copy_out(std::byte* to, const std::byte* from, std::size_t bytes,
                           const std::shared_ptr<const void>& keeper) {
  if (go_straight(to, bytes, keeper))
    driver_.copy(current_, Device::Direction::kOut, to, from, bytes);
  else
    staging_.fetch(current_, to, from, bytes);
}

// Whether a copy needs no detour; the keeper is then kept, before the copy is enqueued. Values that
// lie in one message have one keeper, and follow one another.
bool Queue::go_straight(const std::byte* host, std::size_t bytes,
                        const std::shared_ptr<const void>& keeper) {
  if (keeper == nullptr || bytes == 0 || !pinned_.holds(host, bytes)) return false;
  if (!kept_.empty() && kept_.back() == keeper) return true;
  if (kept_.size() == kKeptMax) {
    join();
    driver_.wait(stream_);
    kept_.clear();
  }
  kept_.push_back(keeper);
  return true;
}

void Queue::send_ahead(std::span<const Tensor> values) {
  if (ahead_ == nullptr) ahead_ = std::make_unique<Ahead>(driver_);
  ahead_->send(values);
}

void Queue::wait() {
  join();
  driver_.wait(stream_);
  kept_.clear();
  if (*static_cast<volatile int*>(any_fault_) != 0) raise_fault();
  staging_.deliver();
}

void Queue::raise_fault() {
  staging_.drop();
  FaultRecord found{};
  driver_.copy(stream_, Device::Direction::kOut, reinterpret_cast<std::byte*>(&found),
               record_->data(), sizeof found);
  driver_.fill_zero(stream_, record_->data(), sizeof found);
  driver_.wait(stream_);
  *any_fault_ = 0;
  const auto site = faults_.find(found.site);
  CAIRN_CHECK(site != faults_.end(), "a fault at the unknown site ", found.site);
  throw InvalidArgumentError(site->second(found.position, found.value));
}

}  // namespace cairn::cuda
