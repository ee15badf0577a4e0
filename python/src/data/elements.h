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

  // Calls use(iterator) without the GIL, while no other thread uses or closes it.
  //   Errors  FailedPrecondition: it is closed.
  template <typename F>
  auto with(F&& use) {
    return released([&] {
      const std::lock_guard hold(open_->mutex);
      return use(open_->get());
    });
  }
  const ElementSpec& element_spec() const { return spec_; }

 private:
  // Shared with close_iterators().
  struct Open {
    ~Open();
    DatasetIterator& get() const;
    void close();
    std::mutex mutex;  // all below, while Python's threads take turns
    std::unique_ptr<Offload> threads;
    std::unique_ptr<DatasetIterator> iterator;
  };
  friend void close_iterators();
  friend struct OpenIterators;

  const ElementSpec spec_;
  std::shared_ptr<Open> open_ = std::make_shared<Open>();
};
// Before the interpreter ends: threads that read ahead may call into it.
void close_iterators();

// "x float32[?], y int64[?], the label".
std::string text_of(const ElementSpec& spec);
std::string html_of(const ElementSpec& spec, const std::string& title);

}  // namespace cairn::python
