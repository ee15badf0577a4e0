// Reading a dataset in Python, element by element.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "core/base/offload.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_iterator.h"
#include "interpreter.h"

namespace cairn::python {

// cairn.DatasetIterator: an iterator, and the threads that read ahead for it.
//   Thread  any, one after another.
class ElementIterator {
 public:
  explicit ElementIterator(const Dataset& dataset, const IteratorState& state = {},
                           OpenOptions options = {});
  ~ElementIterator();
  ElementIterator(const ElementIterator&) = delete;
  ElementIterator& operator=(const ElementIterator&) = delete;

  //   Errors  FailedPrecondition: it is closed.
  DatasetIterator& get() const;
  // The same, run without the GIL while no other thread uses it.
  template <typename F>
  auto with(F&& use) {
    return released([&] {
      const std::lock_guard hold(mutex_);
      return use(get());
    });
  }
  bool closed() const { return iterator_ == nullptr; }
  void close();

 private:
  std::mutex mutex_;  // the iterator, while Python's threads take turns
  std::unique_ptr<Offload> threads_;
  std::unique_ptr<DatasetIterator> iterator_;
};
// Before the interpreter ends: threads that read ahead may call into it.
void close_iterators();

// "x float32[?], y int64[?], the label".
std::string text_of(const ElementSpec& spec);
std::string html_of(const ElementSpec& spec, const std::string& title);

}  // namespace cairn::python
