// The command line of a server program. For this room's .cc files.
#pragma once
#include "rpc/server/server_main.h"

namespace cairn::rpc {

struct ParsedFlags {
  ServerFlags flags;
  int exit_code = 0;
  bool run = false;  // false: end with exit_code; help or an error was printed
};
// Flags, then TF_CONFIG and CAIRN_* for what they left open.
//   Errors  InvalidArgument, NotFound: no address, no such token file, a TF_CONFIG of another form.
ParsedFlags parse_server_flags(int argc, char** argv, const ServerProgram& program);

}  // namespace cairn::rpc
