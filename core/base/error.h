// The closed family of errors that Cairn raises.
//
// A broken promise is an exception derived from cairn::Error; an expected outcome is a value. A
// code exists because some caller acts on it: Unavailable - repeat the call; Aborted - rerun the
// closure; FailedPrecondition - mend the state first; Cancelled - unwind quietly; all others - tell
// the user. The codes, and their numbers, are the canonical ones of tf.errors and gRPC
// (google/rpc/code.proto), so that a code keeps its meaning across the wire.
//   Thread  an Error is immutable; copies may go to any thread.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cairn {

// The numbers are those of the wire; never renumber. docs/errors.md lists who raises which.
enum class Code : std::uint8_t {
  // Unwind quietly: the worker was fenced, its session ended, or another closure failed first.
  kCancelled = 1,
  // A foreign exception, or a code that a newer peer sent.
  kUnknown = 2,
  // The arguments are wrong, whatever the state: repeating the call cannot help.
  kInvalidArgument = 3,
  // The time ran out. The call may have taken effect all the same, so it is repeated only where
  // its header calls that safe.
  kDeadlineExceeded = 4,
  // A name leads to nothing: a file, a variable, a checkpoint.
  kNotFound = 5,
  // Something is there that must not be replaced.
  kAlreadyExists = 6,
  // The system refuses it to this user.
  kPermissionDenied = 7,
  // A bound was reached: memory, disk, open files, a queue.
  kResourceExhausted = 8,
  // The arguments are fine and the state is not: mend the state, then call again.
  kFailedPrecondition = 9,
  // A conflict with something that happened meanwhile: rerun the whole closure from its pull.
  kAborted = 10,
  // Beyond the end of something finite: get_next() at the end of a dataset, where
  // get_next_as_optional() is merely empty.
  kOutOfRange = 11,
  // A newer format, or something that this build does not serve.
  kUnimplemented = 12,
  // A promise that our own code makes to itself is broken: a bug.
  kInternal = 13,
  // Not there at the moment: repeat the same call later.
  kUnavailable = 14,
  // Stored or transmitted bytes are damaged.
  kDataLoss = 15,
  // The peer does not prove who it is. Reserved: nothing raises this code yet.
  kUnauthenticated = 16,
};

// "InvalidArgument" and so on; "Unknown" for a number that is no code.
std::string_view code_name(Code code);

// The operation at which an error was met when it ran, if it was met at one.
struct ErrorPlace {
  std::int32_t node = -1;  // its number in the function's graph, which the message begins with
  std::string origin;      // "/home/me/train.py:31", where known (core/base/origin.h)
};

// The base of the family. what() is the message, a sentence without the code's name. Only the
// classes below are thrown, so a caller may catch one code by its class or all of them by this one.
class Error : public std::runtime_error {
 public:
  Code code() const { return code_; }
  // The task that raised it ("/job:ps/task:1"), empty for this process. A caller that must know
  // which ps to mend asks this and never the message.
  const std::string& task() const { return task_; }
  const ErrorPlace& place() const { return place_; }

 protected:
  Error(Code code, const std::string& message, std::string task = {}, ErrorPlace place = {})
      : std::runtime_error(message),
        code_(code),
        task_(std::move(task)),
        place_(std::move(place)) {}

 private:
  Code code_;
  std::string task_;
  ErrorPlace place_;
};

namespace detail {
// The constructor that all of them share.
template <Code C>
class CodedError : public Error {
 public:
  explicit CodedError(const std::string& message, std::string task = {}, ErrorPlace place = {})
      : Error(C, message, std::move(task), std::move(place)) {}
};
}  // namespace detail

// One class per code, each made from a message and, where another process raised it, the task:
//
//     try {
//       coordinator.join();
//     } catch (const UnavailableError& error) {
//       replace(error.task());  // the task that is gone for good
//     }
struct CancelledError final : detail::CodedError<Code::kCancelled> {
  using CodedError::CodedError;
};
struct UnknownError final : detail::CodedError<Code::kUnknown> {
  using CodedError::CodedError;
};
struct InvalidArgumentError : detail::CodedError<Code::kInvalidArgument> {
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

// A checked value, such as a step's loss, was NaN or infinite. A class of its own, because a
// training loop may end in order for it; others catch it as InvalidArgumentError.
struct NotFiniteError final : InvalidArgumentError {
  using InvalidArgumentError::InvalidArgumentError;
};

// A closure's dataset could not give it its elements: a file is missing, or a cell does not parse.
// It is a class beside those of the codes, because its caller mends the data and not the function.
// Its code is that of the dataset's own error. The end of the data is an OutOfRangeError,
// but on its way from a worker one of these, with the code OutOfRange: it is of one pipeline.
class ClosureInputError final : public Error {
 public:
  ClosureInputError(Code original, const std::string& message, std::string task = {},
                    std::uint64_t pipeline = 0)
      : Error(original, message, std::move(task)), pipeline_(pipeline) {}
  // The number of the pipeline that failed, counted over all pipelines of the session. If the
  // pipeline could not be made at all, the number is counted within its dataset.
  std::uint64_t pipeline() const { return pipeline_; }

 private:
  std::uint64_t pipeline_;
};

// Throws the class that belongs to `code`; a number that is no code throws UnknownError.
[[noreturn]] void throw_error(Code code, const std::string& message, std::string task = {},
                              ErrorPlace place = {});

// An exception as values, to be sent over the wire or kept. A foreign exception reads as Unknown,
// std::bad_alloc as ResourceExhausted.
struct ErrorParts {
  Code code;
  std::string message;
  std::string task;                                  // as Error::task()
  std::optional<std::uint64_t> input_pipeline = {};  // set: a ClosureInputError
  bool not_finite = false;                           // a NotFiniteError
  ErrorPlace place = {};                             // as Error::place()
};
ErrorParts error_parts(std::exception_ptr error);  // `error` must not be null
// The inverse: the same class is thrown here that was caught there.
[[noreturn]] void throw_error(const ErrorParts& parts);

namespace detail {
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  ((out << parts), ...);
  return out.str();
}
// Kept out of the macro, so that a check costs its caller one comparison and one call that is never
// reached.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);
}  // namespace detail

// All parts as one text, each printed by its operator<<. For messages, not for hot paths: it
// allocates.
//
//     throw InvalidArgumentError(str("want ", a, ", got ", b))
template <typename... Parts>
std::string str(const Parts&... parts) {
  return detail::concat(parts...);
}

// A promise that our own code makes to itself. If it is broken, that is our bug: InternalError with
// the place. The parts after the condition are printed only then.
#define CAIRN_CHECK(condition, ...)                                        \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::cairn::detail::check_failed(#condition, __FILE__, __LINE__,        \
                                    ::cairn::detail::concat(__VA_ARGS__)); \
  } while (false)

}  // namespace cairn
