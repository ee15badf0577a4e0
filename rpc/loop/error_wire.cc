#include "rpc/loop/error_wire.h"

#include <kj/debug.h>

#include <charconv>
#include <string_view>

namespace cairn::rpc {
namespace {

// "{cairn <code> <bytes of task> <task>}<message>", of a closure's input "{cairn <code + 32>
// <pipeline> <bytes of task> ...", of a value that is not finite "{cairn <code + 64> ..."; of one
// that was met at a node "{cairn <one of these + 128> <node> ..."
constexpr std::string_view kMark = "{cairn ";
constexpr unsigned kInput = 32, kNotFinite = 64, kAtNode = 128;
// the prefix that Cap'n Proto puts before a text at each hop
constexpr std::string_view kRemote = "remote exception: ";
constexpr std::string_view kTooLarge = "larger than our single-message size limit";
constexpr std::string_view kTooLargeHere = "message exceeds the receive limit";

kj::Exception::Type type_of(Code code) {
  switch (code) {
    case Code::kUnavailable: return kj::Exception::Type::DISCONNECTED;
    case Code::kResourceExhausted: return kj::Exception::Type::OVERLOADED;
    case Code::kUnimplemented: return kj::Exception::Type::UNIMPLEMENTED;
    default: return kj::Exception::Type::FAILED;
  }
}

Code code_of(kj::Exception::Type type) {
  switch (type) {
    case kj::Exception::Type::DISCONNECTED: return Code::kUnavailable;
    case kj::Exception::Type::OVERLOADED: return Code::kResourceExhausted;
    case kj::Exception::Type::UNIMPLEMENTED: return Code::kUnimplemented;
    case kj::Exception::Type::FAILED: break;
  }
  return Code::kUnknown;
}

template <typename T>
bool take_number(std::string_view& text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

// Takes the prefix behind a mark; false: no prefix of ours.
bool take_prefix(std::string_view text, ErrorParts& parts) {
  unsigned code = 0;
  std::size_t task_bytes = 0;
  text.remove_prefix(kMark.size());
  std::uint64_t pipeline = 0;
  std::int32_t node = -1;
  if (!take_number(text, code)) return false;
  if (code > kAtNode) {
    code -= kAtNode;
    if (!take_number(text, node) || node < 0) return false;
  }
  const bool not_finite = code > kNotFinite, input = !not_finite && code > kInput;
  code -= not_finite ? kNotFinite : input ? kInput : 0;
  if (input && !take_number(text, pipeline)) return false;
  if (!take_number(text, task_bytes)) return false;
  if (not_finite && code != static_cast<unsigned>(Code::kInvalidArgument)) return false;
  if (code < 1 || code > 16 || task_bytes >= text.size() || text[task_bytes] != '}') return false;
  parts.code = static_cast<Code>(code);
  parts.task = std::string(text.substr(0, task_bytes));
  parts.message = std::string(text.substr(task_bytes + 1));
  if (input) parts.input_pipeline = pipeline;
  parts.not_finite = not_finite;
  parts.place.node = node;
  return true;
}

std::string_view without_decoration(std::string_view text) {
  while (text.starts_with(kRemote)) text.remove_prefix(kRemote.size());
  return text;
}

// These failures have no type of their own in Cap'n Proto: only the text distinguishes them.
ErrorParts plain(const kj::Exception& error, std::string_view text) {
  if (text.find(kTooLarge) != text.npos || text.find(kTooLargeHere) != text.npos) {
    return {Code::kResourceExhausted,
            "the message is larger than the connection's limit; send it in pieces, or raise "
            "message_bytes_max on both sides",
            {}};
  }
  // 0.9 reports calls on a connection that this side has torn down as FAILED.
  if (text.find("RpcSystem was destroyed") != text.npos)
    return {Code::kUnavailable, "the connection was closed", {}};
  return {code_of(error.getType()), std::string(text), {}};
}

}  // namespace

kj::Exception to_kj(Code code, const std::string& message, const std::string& task) {
  return to_kj(ErrorParts{code, message, task});
}

kj::Exception to_kj(const ErrorParts& parts) {
  unsigned code = static_cast<unsigned>(parts.code);
  code += parts.input_pipeline ? kInput : parts.not_finite ? kNotFinite : 0;
  const bool at_node = parts.place.node >= 0;
  std::string kind = at_node ? str(code + kAtNode, ' ', parts.place.node) : str(code);
  if (parts.input_pipeline) kind += str(' ', *parts.input_pipeline);
  auto text = str(kMark, kind, ' ', parts.task.size(), ' ', parts.task, '}', parts.message);
  return kj::Exception(type_of(parts.code), __FILE__, __LINE__,
                       kj::heapString(text.data(), text.size()));
}

// A kj::Exception passes unchanged: an error that came from one server and leaves through another
// keeps the code and the task that its text names.
kj::Exception to_kj(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const kj::Exception& e) {
    return kj::Exception(e);
  } catch (...) {
    return to_kj(error_parts(std::current_exception()));
  }
}

ErrorParts from_kj(const kj::Exception& error) {
  std::string_view text =
      without_decoration({error.getDescription().begin(), error.getDescription().size()});
  ErrorParts parts{Code::kUnknown, {}, {}};
  // KJ may put the place of a check before a text that it passes on, so the mark need not come
  // first.
  auto mark = text.find(kMark);
  if (mark == text.npos || !take_prefix(text.substr(mark), parts)) parts = plain(error, text);
  // The trace names the task at the other end of the connection (connection.cc).
  std::string_view trace(error.getRemoteTrace().begin(), error.getRemoteTrace().size());
  if (parts.task.empty() && trace.starts_with("/job:")) parts.task = std::string(trace);
  return parts;
}

std::string error_text(std::exception_ptr error) {
  const auto sent = to_kj(from_kj(to_kj(error)));  // a foreign one gets the prefix, too
  return {sent.getDescription().begin(), sent.getDescription().size()};
}

ErrorParts from_error_text(const std::string& text) {
  return from_kj(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__,
                               kj::heapString(text.data(), text.size())));
}

void throw_from_kj(const kj::Exception& error) { throw_error(from_kj(error)); }

std::string describe(const ErrorParts& parts) {
  auto text = str(code_name(parts.code), ": ", parts.message);
  return parts.task.empty() ? text : str(text, " (raised by ", parts.task, ")");
}

}  // namespace cairn::rpc
