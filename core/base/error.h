// The closed family of errors that Cairn raises.
//
// A broken promise is an exception derived from cairn::Error; an expected outcome is a value. A
// code exists because some caller acts on it: Unavailable - repeat the call; Aborted - rerun the
// closure; FailedPrecondition - mend the state first; Cancelled - unwind quietly; all others - tell
// the user. The codes are the canonical ones of tf.errors / gRPC, so that a code keeps its meaning
// across the wire.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cairn {

enum class Code : std::uint8_t {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

std::string_view code_name(Code code);  // "InvalidArgument", ...

class Error : public std::runtime_error {
 public:
  Code code() const { return code_; }
  // The task that raised it ("/job:ps/task:1"), empty for this process.
  const std::string& task() const { return task_; }

 protected:
  Error(Code code, const std::string& message, std::string task = {})
      : std::runtime_error(message), code_(code), task_(std::move(task)) {}

 private:
  Code code_;
  std::string task_;
};

namespace detail {
template <Code C>
class CodedError : public Error {
 public:
  explicit CodedError(const std::string& message, std::string task = {})
      : Error(C, message, std::move(task)) {}
};
}  // namespace detail

struct CancelledError final : detail::CodedError<Code::kCancelled> {
  using CodedError::CodedError;
};
struct UnknownError final : detail::CodedError<Code::kUnknown> {
  using CodedError::CodedError;
};
struct InvalidArgumentError final : detail::CodedError<Code::kInvalidArgument> {
  using CodedError::CodedError;
};
struct DeadlineExceededError final : detail::CodedError<Code::kDeadlineExceeded> {
  using CodedError::CodedError;
};
struct NotFoundError final : detail::CodedError<Code::kNotFound> {
  using CodedError::CodedError;
};
struct AlreadyExistsError final : detail::CodedError<Code::kAlreadyExists> {
  using CodedError::CodedError;
};
struct PermissionDeniedError final : detail::CodedError<Code::kPermissionDenied> {
  using CodedError::CodedError;
};
struct ResourceExhaustedError final : detail::CodedError<Code::kResourceExhausted> {
  using CodedError::CodedError;
};
struct FailedPreconditionError final : detail::CodedError<Code::kFailedPrecondition> {
  using CodedError::CodedError;
};
struct AbortedError final : detail::CodedError<Code::kAborted> {
  using CodedError::CodedError;
};
struct OutOfRangeError final : detail::CodedError<Code::kOutOfRange> {
  using CodedError::CodedError;
};
struct UnimplementedError final : detail::CodedError<Code::kUnimplemented> {
  using CodedError::CodedError;
};
struct InternalError final : detail::CodedError<Code::kInternal> {
  using CodedError::CodedError;
};
struct UnavailableError final : detail::CodedError<Code::kUnavailable> {
  using CodedError::CodedError;
};
struct DataLossError final : detail::CodedError<Code::kDataLoss> {
  using CodedError::CodedError;
};
struct UnauthenticatedError final : detail::CodedError<Code::kUnauthenticated> {
  using CodedError::CodedError;
};

// A closure's dataset could not give it its elements: a file is missing, a cell does not parse. The
// one class beside those of the codes, since a caller mends the data and not the function. Its code
// is that of the dataset's own error; the end of the data is an OutOfRangeError, not this.
class ClosureInputError final : public Error {
 public:
  ClosureInputError(Code original, const std::string& message, std::string task = {},
                    std::uint64_t pipeline = 0)
      : Error(original, message, std::move(task)), pipeline_(pipeline) {}
  // The number of the pipeline that failed, among all of the session; of one that could not be
  // made, among its dataset's.
  std::uint64_t pipeline() const { return pipeline_; }

 private:
  std::uint64_t pipeline_;
};

// Throws the class that belongs to `code`.
[[noreturn]] void throw_error(Code code, const std::string& message, std::string task = {});

// What an exception pointer holds; a foreign exception reads as Unknown.
struct ErrorParts {
  Code code;
  std::string message;
  std::string task;
  std::optional<std::uint64_t> input_pipeline = {};  // set: a ClosureInputError
};
ErrorParts error_parts(std::exception_ptr error);
[[noreturn]] void throw_error(const ErrorParts& parts);

namespace detail {
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  ((out << parts), ...);
  return out.str();
}
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace detail

// throw InvalidArgumentError(str("want ", a, ", got ", b))
template <typename... Parts>
std::string str(const Parts&... parts) {
  return detail::concat(parts...);
}

// A promise that our own code makes to itself. Broken, it is our bug: InternalError with the place.
#define CAIRN_CHECK(condition, ...)                                        \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::cairn::detail::check_failed(#condition, __FILE__, __LINE__,        \
                                    ::cairn::detail::concat(__VA_ARGS__)); \
  } while (false)

}  // namespace cairn
