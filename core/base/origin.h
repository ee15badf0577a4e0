// Origin: the line of a program on which an operation was recorded.
//
// A worker that runs a graph has not seen the program that recorded it. Its errors can name an
// operation and its shapes, but not the line of code. A front-end supplies that line here, so that
// errors read "train.py:31, in step: matmul(...): ...". Origins are not part of a graph's bytes or
// hash, so equal graphs are one function wherever they were written. They are not sent to workers:
// the coordinator looks up the origin by the number of the node that an error carries.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// A few words, copied freely. The names live as long as the process does.
struct Origin {
  const std::string* file = nullptr;  // nullptr: not known
  const std::string* function = nullptr;
  std::int32_t line = 0;

  bool known() const { return file != nullptr; }
  // For messages: "train.py:31, in step". The folders of the file are left out.
  std::string text() const;
  // For programs: "/home/me/train.py:31".
  std::string path_and_line() const;
};

// An origin of these names, each of which is kept once.
Origin make_origin(std::string_view file, std::string_view function, std::int32_t line);

// Returns the origin of the operation that the calling thread is recording. It is called once for
// every recorded operation, so it must be fast. It must not throw.
using OriginSource = Origin (*)();
void set_origin_source(OriginSource source);  // nullptr, as at first: none are known

// The origin of what is recorded on this thread now.
Origin current_origin();

// While it lives, everything that this thread records has the given origin: a gradient gets that of
// the operation that it belongs to. An unknown origin changes nothing.
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
