// Arrow's C data and C stream interfaces: how tables of pandas, polars, pyarrow and duckdb pass
// between libraries that share no code.
//   Source  arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html, whose
//           structures these are, and CDataInterface/PyCapsuleInterface.html for the capsules.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpreter.h"

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace cairn::python {

// One of the structures, released at its end unless it was moved away.
template <typename T>
class Arrow {
 public:
  Arrow() = default;
  explicit Arrow(T* taken) : value_(std::exchange(*taken, T{})) {}
  Arrow(Arrow&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Arrow& operator=(Arrow&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Arrow() {
    if (value_.release != nullptr) value_.release(&value_);
  }
  T* get() { return &value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  bool released() const { return value_.release == nullptr; }

 private:
  T value_{};
};

// All batches of a stream. The libraries that gave them may run Python when they let go of them.
struct ArrowBatches {
  Arrow<ArrowSchema> schema;
  std::vector<Arrow<ArrowArray>> arrays;
  std::int64_t rows = 0;
};

// Reads what the object's __arrow_c_stream__() gives to its end, without the GIL.
//   Errors  TypeError: it gives something else. InvalidArgument: the library's own, and a stream
//           that is damaged.
std::unique_ptr<ArrowBatches> read_arrow_stream(nb::handle table);

}  // namespace cairn::python
