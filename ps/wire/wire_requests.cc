#include "ps/wire/wire_requests.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "core/memory/bulk_copy.h"
#include "rpc/net/shared_memory.h"
#include "rpc/wire/step_wire.h"
#include "storage/database_place.h"

namespace cairn::ps {
namespace {

static_assert(std::endian::native == std::endian::little,
              "row numbers and values are used as they lie in the message");
constexpr unsigned kHeadersMax = 1u << 20;
constexpr std::size_t kSharedIdBytesMax = std::size_t{64} << 20;  // as a message has at most

std::span<const std::int64_t> read_ids(capnp::Data::Reader data) {
  if (data.size() % sizeof(std::int64_t) != 0)
    throw InvalidArgumentError(str("ids of ", data.size(), " bytes: they have 8 bytes each"));
  return {reinterpret_cast<const std::int64_t*>(data.begin()), data.size() / sizeof(std::int64_t)};
}

// The place is named by the worker: at() verifies that it lies within the shared memory.
std::span<std::byte> shared_bytes(wire::Place::Reader place, const SharedBulk& shared) {
  if (shared.memory == nullptr)
    throw InvalidArgumentError(
        "a call names a place in shared memory, of which this connection has none");
  return shared.memory->at(place.getOffset(), place.getBytes());
}

// Ids in shared memory are copied before they are verified: the worker could change them between
// the check and their use. Values need no copy, because any bits are values.
template <typename Params>
std::span<const std::int64_t> read_ids(Params in, SharedBulk& shared) {
  if (!in.hasIdsAt()) return read_ids(in.getIds());
  const std::span<std::byte> bytes = shared_bytes(in.getIdsAt(), shared);
  if (bytes.size() % sizeof(std::int64_t) != 0 || bytes.size() > kSharedIdBytesMax)
    throw InvalidArgumentError(str("ids of ", bytes.size(),
                                   " bytes: they have 8 bytes each, and at most ",
                                   kSharedIdBytesMax, " in a call"));
  shared.ids.resize(bytes.size() / sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(shared.ids.data(), bytes.data(), bytes.size());
  return shared.ids;
}

PushValues read_values(wire::Shard::PushParams::Reader in,
                       std::vector<std::span<const std::byte>>& places, const SharedBulk& shared) {
  if (in.hasValuesAt()) {
    const auto at = wire::bounded(in.getValuesAt(), kHeadersMax, "places of values");
    places.reserve(at.size());
    // Places may overlap, so that a small memory could be named as terabytes of values.
    std::size_t bytes = 0;
    for (const auto place : at) bytes += places.emplace_back(shared_bytes(place, shared)).size();
    if (!places.empty() && bytes > shared.memory->bytes())
      throw InvalidArgumentError(str("the ", places.size(), " places of a push's values take ",
                                     bytes, " bytes of a shared memory of ",
                                     shared.memory->bytes()));
  }
  if (!places.empty()) return std::span<const std::span<const std::byte>>(places);
  const auto values = in.getValues();
  return std::span(reinterpret_cast<const std::byte*>(values.begin()), values.size());
}

}  // namespace

RowEncoding read_encoding(wire::Encoding encoding) {
  switch (encoding) {
    case wire::Encoding::RAW: return RowEncoding::kRaw;
    case wire::Encoding::BFLOAT16: return RowEncoding::kBfloat16;
  }
  throw InvalidArgumentError(str("encoding ", static_cast<int>(encoding),
                                 " is unknown: a newer version of Cairn sent it"));
}

std::vector<UpdateHeader> read_headers(capnp::List<wire::UpdateHeader>::Reader in) {
  const auto headers = wire::bounded(in, kHeadersMax, "headers");
  std::vector<UpdateHeader> out;
  out.reserve(headers.size());
  for (const auto header : headers)
    out.push_back({header.getVariable(), header.getPart(), header.getRows(), header.getWhole(),
                   wire::read(header.getRule()), header.getLearningRate()});
  return out;
}

std::vector<RoundMember> read_members(capnp::List<wire::RoundMember>::Reader in) {
  const auto members = wire::bounded(in, kHeadersMax, "members of a round");
  std::vector<RoundMember> out;
  out.reserve(members.size());
  for (const auto member : members) out.push_back({member.getClosure(), member.getSentLayout()});
  return out;
}

DecodedPull read_pull(wire::Shard::PullParams::Reader in, SharedBulk& shared) {
  DecodedPull out;
  const auto headers = wire::bounded(in.getHeaders(), kHeadersMax, "headers");
  out.headers.reserve(headers.size());
  for (const auto header : headers)
    out.headers.push_back({header.getVariable(), header.getPart(), header.getRows(),
                           header.getWhole(), header.getWritten()});
  out.request = {wire::read(in.getStep()), out.headers, read_ids(in, shared),
                 read_encoding(in.getEncoding())};
  out.request.copies_of = in.getCopiesOf();
  if (in.hasValuesAt()) {
    out.to = shared_bytes(in.getValuesAt(), shared);
    // So much does not stay in this core's caches until the worker's core reads it: it goes past
    // them.
    if (out.to.size() >= kBulkBytes) out.request.next_reader = NextReader::kAnotherCore;
  }
  return out;
}

DecodedPull read_rows(wire::Shard::ReadRowsParams::Reader in) {
  DecodedPull out;
  const auto headers = wire::bounded(in.getHeaders(), kHeadersMax, "headers");
  out.headers.reserve(headers.size());
  for (const auto header : headers)
    out.headers.push_back(
        {header.getVariable(), header.getPart(), header.getRows(), header.getWhole()});
  out.request.headers = out.headers;
  out.request.ids = read_ids(in.getIds());
  return out;
}

DecodedPush read_push(wire::Shard::PushParams::Reader in, SharedBulk& shared) {
  DecodedPush out;
  out.headers = read_headers(in.getHeaders());
  out.request.step = wire::read(in.getStep());
  out.request.pulled = {in.getPulled().getLineage(), in.getPulled().getCounter()};
  out.request.headers = out.headers;
  out.request.ids = read_ids(in, shared);
  out.request.values = read_values(in, out.places, shared);
  out.request.encoding = read_encoding(in.getEncoding());
  out.request.piece = in.getPiece();
  out.request.pieces = in.getPieces();
  out.request.slice = in.getSlice();
  return out;
}

// Lists are bounded before anything is allocated for them, as everywhere in this file: the sizes
// are another process's word.
Configuration read_configuration(wire::Shard::ConfigureParams::Reader in) {
  Configuration out{in.getSession(), in.getLayoutVersion(), in.getSeed(), {}, Epoch(in.getEpoch())};
  for (const auto table : wire::bounded(in.getTables(), kHeadersMax, "tables")) {
    TableConfig config{table.getVariable(),
                       std::make_shared<const VariableSpec>(wire::read(table.getSpec())),
                       wire::read(table.getRule()),
                       {}};
    for (const auto part : wire::bounded(table.getParts(), kHeadersMax, "parts of a table")) {
      if (part.getVariable() != config.variable)
        throw InvalidArgumentError(str("a part of variable number ", part.getVariable(),
                                       " among those of '", config.spec->name, "', number ",
                                       config.variable));
      config.parts.push_back({part.getIndex(), {part.getBegin(), part.getEnd()}});
    }
    out.tables.push_back(std::move(config));
  }
  return out;
}

std::vector<LaneIncarnation> read_alive(wire::Shard::FenceParams::Reader in) {
  std::vector<LaneIncarnation> alive;
  for (const std::uint64_t incarnation :
       wire::bounded(in.getAlive(), kHeadersMax, "lanes that live"))
    alive.emplace_back(incarnation);
  return alive;
}

DecodedRound read_round(wire::Shard::ApplyRoundParams::Reader in) {
  DecodedRound out;
  out.members = read_members(in.getMembers());
  out.request = {in.getSession(), in.getRound(), out.members};
  return out;
}

StateRequest read_state(wire::Shard::ReadStateParams::Reader in) {
  return {in.getSession(), Epoch(in.getEpoch()), in.getVariable(),
          in.getPart(),    in.getBegin(),        in.getRows()};
}

ChangesRequest read_changes(wire::Shard::ChangesParams::Reader in) {
  ChangesRequest request{.subscriber = in.getSubscriber(),
                         .described = in.getDescription(),
                         .incarnation = in.getIncarnation(),
                         .cursor = in.getCursor(),
                         .bytes_max = in.getBytesMax(),
                         .variables = {},
                         .from = {}};
  for (const VariableId variable : wire::bounded(in.getVariables(), kHeadersMax, "variables"))
    request.variables.push_back(variable);
  std::ranges::sort(request.variables);
  return request;
}

AppliedSet read_applied(wire::AppliedSet::Reader in) {
  AppliedSet set{in.getLowWatermark(), {}};
  for (const auto range : wire::bounded(in.getClosures(), kHeadersMax, "ranges of closures"))
    set.closures.emplace_back(range.getBegin(), range.getEnd());
  return set;
}

std::map<std::string, RowMove> read_moves(capnp::List<wire::RestoreMove>::Reader in) {
  constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();
  std::map<std::string, RowMove> moves;
  for (const auto each : wire::bounded(in, wire::kListMax, "moves")) {
    RowMove move{
        .from = wire::read_name(each.getFrom()), .slots = each.getSlots(), .rows = each.getRows()};
    if (move.rows < 0) throw InvalidArgumentError(str("a variable has ", move.rows, " rows"));
    if (each.hasNumbers()) {
      auto numbers = std::make_shared<RowNumbers>();
      for (const std::uint32_t row :
           wire::bounded(each.getNumbers(), kRowNumbersMax, "numbers of rows"))
        numbers->push_back(row == kGone ? kRowGone : std::int64_t{row});
      move.numbers = std::move(numbers);
    }
    moves[wire::read_name(each.getVariable())] = std::move(move);
  }
  return moves;
}

storage::ChosenEncoding read_encoding(wire::RowEncoding::Reader in) {
  using namespace storage;
  if (in.getRows() > static_cast<std::uint8_t>(RowForm::kInt8) ||
      in.getSlots() > static_cast<std::uint8_t>(SlotForm::kDropped) ||
      in.getCompression() > static_cast<std::uint8_t>(Compression::kZstd))
    throw InvalidArgumentError(
        "a save asks for rows in a form that this ps does not know: run one release of Cairn on "
        "all machines");
  ChosenEncoding encoding{static_cast<RowForm>(in.getRows()),
                          static_cast<SlotForm>(in.getSlots()),
                          static_cast<Compression>(in.getCompression()),
                          {}};
  for (const auto name : wire::bounded(in.getVariables(), wire::kListMax, "variables"))
    encoding.variables.insert(wire::read_name(name));
  return encoding;
}

// A ps writes files where a message says. An absolute path without ".." is at least the one that
// the log and the errors show.
std::string read_folder(capnp::Text::Reader in) {
  std::string folder = wire::read_name(in);
  const std::filesystem::path path(folder);
  // A bucket is no place on this machine.
  if (folder.starts_with("s3://") && folder.find("..") == std::string::npos &&
      folder.find('\0') == std::string::npos)
    return folder;
  const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
  if (!path.is_absolute() || climbs || folder.find('\0') != std::string::npos)
    throw InvalidArgumentError(
        str("checkpoint folder \"", folder, "\": a ps takes an absolute path without \"..\""));
  return folder;
}

std::vector<std::string> read_local_databases(capnp::List<capnp::Text>::Reader in) {
  std::vector<std::string> databases;
  for (const auto text : wire::bounded(in, wire::kListMax, "databases")) {
    databases.push_back(wire::read_name(text));
    if (storage::local_rows_of(databases.back()).empty())
      throw InvalidArgumentError(
          str("'", databases.back(), "' is not the name of a database in a local folder"));
  }
  return databases;
}

// A folder that is removed is at least named as this program names those that it writes.
std::vector<std::string> read_rows_folders(capnp::List<capnp::Text>::Reader in) {
  std::vector<std::string> folders;
  for (const auto text : wire::bounded(in, wire::kListMax, "folders")) {
    folders.push_back(wire::read_name(text));
    if (storage::local_rows_of(folders.back() + "/x") != folders.back())
      throw InvalidArgumentError(
          str("'", folders.back(), "' is not the name of a folder of rows of a checkpoint"));
  }
  return folders;
}

void write(wire::Version::Builder out, const ShardVersion& version) {
  out.setLineage(version.lineage.number);
  out.setCounter(version.counter);
}

void write(wire::AppliedSet::Builder out, const AppliedSet& set) {
  out.setLowWatermark(set.low_watermark);
  auto closures = out.initClosures(static_cast<unsigned>(set.closures.size()));
  for (unsigned i = 0; i < closures.size(); ++i) {
    closures[i].setBegin(set.closures[i].first);
    closures[i].setEnd(set.closures[i].second);
  }
}

void write(wire::Shard::SaveResults::Builder out, const std::vector<SavedDatabase>& saved) {
  auto rows = out.initDatabaseRows(static_cast<unsigned>(saved.size()));
  std::uint64_t all_rows = 0, all_bytes = 0;
  std::vector<storage::FileInfo> files;
  for (unsigned i = 0; i < rows.size(); ++i) {
    rows.set(i, saved[i].rows);
    all_rows += saved[i].rows;
    all_bytes += saved[i].bytes;
    files.insert(files.end(), saved[i].files.begin(), saved[i].files.end());
  }
  out.setRows(all_rows);
  out.setBytes(all_bytes);
  auto list = out.initFiles(static_cast<unsigned>(files.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(files[i].name);
    list[i].setBytes(files[i].bytes);
    list[i].setChecksum(files[i].checksum);
  }
}

}  // namespace cairn::ps
