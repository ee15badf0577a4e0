// Origin: the line of a program on which an operation was recorded.
//
// A graph is run far from the program that recorded it, so an error met there can name an operation
// and shapes, but not the line that wrote it. A front-end that knows the line gives it here, and
// errors say "train.py:31, in step: matmul(...): ...". It is no part of a graph's bytes or hash:
// equal graphs are one function, wherever they were written. Workers are sent none of it; where
// their errors arrive, the number of the node leads to its origin.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// A few words, copied freely. The names live as long as the process does.
struct Origin {
  const std::string* file = nullptr;  // nullptr: nobody knows
  const std::string* function = nullptr;
  std::int32_t line = 0;

  bool known() const { return file != nullptr; }
  // "train.py:31, in step": the file without its folders.
  std::string text() const;
  // "/home/me/train.py:31".
  std::string path_and_line() const;
};

// An origin of these names, each of which is kept once.
Origin make_origin(std::string_view file, std::string_view function, std::int32_t line);

// A front-end's function that gives the origin of the operation which this thread records now. It
// is called once for each, so it must be fast; it must not throw.
using OriginSource = Origin (*)();
void set_origin_source(OriginSource source);  // nullptr, as at first: none are known

// The origin of what is recorded on this thread now.
Origin current_origin();

// While it lives, what this thread records has that origin, as gradients have that of the operation
// which they are of. One that is not known changes nothing.
class [[nodiscard]] OriginScope {
 public:
  explicit OriginScope(const Origin& origin);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  Origin before_;
};

}  // namespace cairn
