// How those who look at a device's work tell its parts apart: profilers by names, traces by tracks.
#pragma once
#include <mutex>
#include <set>
#include <string>

#include "core/kernels/cuda/runtime/driver.h"

namespace cairn::cuda {

// Names the work that is enqueued while it lives. Without a driver it does nothing.
class NamedRange {
 public:
  NamedRange(Driver* driver, const std::string& name) : driver_(driver) {
    if (driver_ != nullptr) driver_->begin_range(name.c_str());
  }
  ~NamedRange() {
    if (driver_ != nullptr) driver_->end_range();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  Driver* const driver_;
};

// Numbers of the queues that there are at once, from 1 on. Thread: any.
class QueueNumbers {
 public:
  int take() {
    const std::lock_guard hold(mutex_);
    int number = 1;
    while (taken_.contains(number)) ++number;
    taken_.insert(number);
    return number;
  }
  void give_back(int number) {
    const std::lock_guard hold(mutex_);
    taken_.erase(number);
  }

 private:
  std::mutex mutex_;  // guards taken_
  std::set<int> taken_;
};

// Work of several queues overlaps, and so has tracks of its own; those of one that has ended are
// used again.
class Track {
 public:
  Track(QueueNumbers& numbers, const std::string& device)
      : numbers_(numbers),
        number_(numbers.take()),
        name_(number_ == 1 ? device : device + ", queue " + std::to_string(number_)) {}
  ~Track() { numbers_.give_back(number_); }
  Track(const Track&) = delete;
  Track& operator=(const Track&) = delete;
  const std::string& name() const { return name_; }

 private:
  QueueNumbers& numbers_;
  const int number_;
  const std::string name_;
};

}  // namespace cairn::cuda
