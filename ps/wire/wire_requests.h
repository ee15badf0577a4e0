// Requests of rpc/cairn.capnp as the shard's plain structs. Spans refer to the message: keep it
// while they are used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/rows/row_move.h"
#include "ps/follow/subscriptions.h"
#include "ps/shard/applied.h"
#include "ps/shard/checkpoint_requests.h"
#include "ps/shard/requests.h"
#include "rpc/cairn.capnp.h"
#include "storage/row_encoding.h"

namespace cairn::rpc {
class SharedMemory;
}

namespace cairn::ps {

// Where bulk may lie besides the message. Ids are copied before they are used: what is shared may
// change after it was verified.
struct SharedBulk {
  const rpc::SharedMemory* memory = nullptr;  // null: the connection has none
  std::vector<std::int64_t> ids;              // the last request's
};

// A pull or push with the headers that its spans refer to.
struct DecodedPull {
  std::vector<ReadHeader> headers;
  PullRequest request;
  std::span<std::byte> to;  // where the values go; empty: into the answer
};
struct DecodedPush {
  std::vector<UpdateHeader> headers;
  std::vector<std::span<const std::byte>> places;  // of the values, if they lie in shared memory
  PushRequest request;
};

struct DecodedRound {
  std::vector<RoundMember> members;
  RoundRequest request;
};

// Errors InvalidArgument: a malformed blob, an unknown encoding or rule, a place that is not in the
// shared memory. Thread: any.
RowEncoding read_encoding(wire::Encoding encoding);
std::vector<UpdateHeader> read_headers(capnp::List<wire::UpdateHeader>::Reader in);
std::vector<RoundMember> read_members(capnp::List<wire::RoundMember>::Reader in);
DecodedPull read_pull(wire::Shard::PullParams::Reader in, SharedBulk& shared);
DecodedPull read_rows(wire::Shard::ReadRowsParams::Reader in);  // of no step: the caller has none
DecodedPush read_push(wire::Shard::PushParams::Reader in, SharedBulk& shared);
Configuration read_configuration(wire::Shard::ConfigureParams::Reader in);
std::vector<LaneIncarnation> read_alive(wire::Shard::FenceParams::Reader in);
DecodedRound read_round(wire::Shard::ApplyRoundParams::Reader in);
StateRequest read_state(wire::Shard::ReadStateParams::Reader in);
ChangesRequest read_changes(
    wire::Shard::ChangesParams::Reader in);  // ChangesRequest::from is empty
AppliedSet read_applied(wire::AppliedSet::Reader in);
// By the variable's name here.   Errors  InvalidArgument: a negative number of rows.
std::map<std::string, RowMove> read_moves(capnp::List<wire::RestoreMove>::Reader in);
// Reads a checkpoint's folder: one absolute path without "..", so that no two processes take it for
// two folders. Errors  InvalidArgument: any other path.
std::string read_folder(capnp::Text::Reader in);
// Databases in local folders (storage/database_place.h), and the folders of rows that they lie in.
//   Errors  InvalidArgument: another path.
std::vector<std::string> read_local_databases(capnp::List<capnp::Text>::Reader in);
std::vector<std::string> read_rows_folders(capnp::List<capnp::Text>::Reader in);
// How a save holds rows.
//   Errors  InvalidArgument: a form that this release does not know.
storage::ChosenEncoding read_encoding(wire::RowEncoding::Reader in);
void write(wire::Version::Builder out, const ShardVersion& version);
void write(wire::AppliedSet::Builder out, const AppliedSet& set);
void write(wire::Shard::SaveResults::Builder out, const std::vector<SavedDatabase>& saved);

}  // namespace cairn::ps
