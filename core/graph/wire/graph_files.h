// Recorded functions as files, for people: with CAIRN_GRAPHS=FOLDER in its environment a process
// writes each function that it traces to FOLDER/PID-NUMBER-NAME.txt. The first line has the graph's
// hash and its numbers of nodes and variables; to_text() follows. Two programs that train the same
// have equal hashes.
//   Thread  any.
#pragma once
#include <string>

#include "core/graph/graph.h"

namespace cairn {

// Writes the function if CAIRN_GRAPHS is set; otherwise does nothing.
//   Errors  PermissionDenied: the folder or the file cannot be written.
void write_graph_file(const std::string& name, const Graph& graph, const GraphHash& hash);

}  // namespace cairn
