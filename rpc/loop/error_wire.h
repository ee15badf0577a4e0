// How a cairn::Error travels: Cap'n Proto carries a type and a text, so code and task go into a
// prefix of the text that the other side takes off again. No code but these functions ever sees the
// prefix.
#pragma once
#include <kj/exception.h>

#include <exception>
#include <string>

#include "core/base/error.h"

namespace cairn::rpc {

// The exception to send. A foreign exception becomes Unknown, bad_alloc ResourceExhausted; a
// kj::Exception passes as it is.
kj::Exception to_kj(std::exception_ptr error);
kj::Exception to_kj(Code code, const std::string& message, const std::string& task = {});
kj::Exception to_kj(const ErrorParts& parts);

// The parts of an exception that the library reported: the sent ones where a prefix is found,
// otherwise by type: DISCONNECTED -> Unavailable, OVERLOADED -> ResourceExhausted, UNIMPLEMENTED ->
// Unimplemented, else Unknown. A call refused for its size reads as ResourceExhausted. Total: any
// text, hostile ones too, gives an answer.
ErrorParts from_kj(const kj::Exception& error);

// The same as a text, for errors that travel inside an answer.
std::string error_text(std::exception_ptr error);
ErrorParts from_error_text(const std::string& text);

[[noreturn]] void throw_from_kj(const kj::Exception& error);

// "Unavailable: the connection ended" and, where a task is known, " (raised by /job:ps/task:1)":
// for logs.
std::string describe(const ErrorParts& parts);

}  // namespace cairn::rpc
