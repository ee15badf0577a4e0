#include "core/base/error.h"

#include <array>
#include <new>

namespace cairn {
namespace {
// The place is the code's number; OK, which is no Code, keeps the places equal.
constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",       "Cancelled",      "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};
}  // namespace

std::string_view code_name(Code code) {
  auto i = static_cast<std::size_t>(code);
  return i < kCodeNames.size() ? kCodeNames[i] : "Unknown";
}

// No default label: when a code is added, the compiler's warning about the switch names this place.
// A number from the wire that is none of them leaves the switch and becomes Unknown.
void throw_error(Code code, const std::string& message, std::string task, ErrorPlace place) {
  switch (code) {
    case Code::kCancelled: throw CancelledError(message, std::move(task), std::move(place));
    case Code::kInvalidArgument:
      throw InvalidArgumentError(message, std::move(task), std::move(place));
    case Code::kDeadlineExceeded:
      throw DeadlineExceededError(message, std::move(task), std::move(place));
    case Code::kNotFound: throw NotFoundError(message, std::move(task), std::move(place));
    case Code::kAlreadyExists: throw AlreadyExistsError(message, std::move(task), std::move(place));
    case Code::kPermissionDenied:
      throw PermissionDeniedError(message, std::move(task), std::move(place));
    case Code::kResourceExhausted:
      throw ResourceExhaustedError(message, std::move(task), std::move(place));
    case Code::kFailedPrecondition:
      throw FailedPreconditionError(message, std::move(task), std::move(place));
    case Code::kAborted: throw AbortedError(message, std::move(task), std::move(place));
    case Code::kOutOfRange: throw OutOfRangeError(message, std::move(task), std::move(place));
    case Code::kUnimplemented: throw UnimplementedError(message, std::move(task), std::move(place));
    case Code::kInternal: throw InternalError(message, std::move(task), std::move(place));
    case Code::kUnavailable: throw UnavailableError(message, std::move(task), std::move(place));
    case Code::kDataLoss: throw DataLossError(message, std::move(task), std::move(place));
    case Code::kUnauthenticated:
      throw UnauthenticatedError(message, std::move(task), std::move(place));
    case Code::kUnknown: break;
  }
  throw UnknownError(message, std::move(task), std::move(place));
}

void throw_error(const ErrorParts& parts) {
  if (parts.input_pipeline)
    throw ClosureInputError(parts.code, parts.message, parts.task, *parts.input_pipeline);
  if (parts.not_finite) throw NotFiniteError(parts.message, parts.task, parts.place);
  throw_error(parts.code, parts.message, parts.task, parts.place);
}

// The handlers run from the most derived class to the least: the first that fits is taken.
ErrorParts error_parts(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const ClosureInputError& e) {
    return {e.code(), e.what(), e.task(), e.pipeline()};
  } catch (const NotFiniteError& e) {
    return {e.code(), e.what(), e.task(), std::nullopt, true, e.place()};
  } catch (const Error& e) {
    return {e.code(), e.what(), e.task(), std::nullopt, false, e.place()};
  } catch (const std::bad_alloc&) {
    return {Code::kResourceExhausted, "out of memory", {}};
  } catch (const std::exception& e) {
    return {Code::kUnknown, e.what(), {}};
  } catch (...) {
    return {Code::kUnknown, "an exception of unknown type", {}};
  }
}

namespace detail {
// The place stands first: with it a report is worth something even where the message is not.
void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(
      str(file, ":", line, ": check failed: ", condition, message.empty() ? "" : ": ", message));
}
}  // namespace detail
}  // namespace cairn
