// Where a task has the cluster's shared secret from.
#pragma once

#include <string>

namespace cairn::rpc {

// The file's first line, without blanks at its end.
// Errors  NotFound: no such file, or an empty one.
std::string read_token(const std::string& path);

// That of the file which CAIRN_TOKEN_FILE names, else CAIRN_TOKEN, else none.
// Errors  read_token's.
std::string token_of_environment();

}  // namespace cairn::rpc
