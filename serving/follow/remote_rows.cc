#include "serving/follow/remote_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "serving/follow/shard_calls.h"

namespace cairn::serving {
namespace {

// Values of one call; a row that is larger goes alone.
constexpr std::size_t kCallBytesMax = std::size_t{4} << 20;

}  // namespace

struct RemoteRows::Link {
  ShardAddress at;
  bool known = false;  // it has described itself
  std::uint32_t of = 1;
  ShardDescription description;
  // Null: the shard is away.
  std::unique_ptr<rpc::Connection> connection;
  std::exception_ptr error;  // why
  kj::Own<kj::PromiseFulfiller<void>> outdated;
  bool outdated_now = false;  // another description is being asked for
  BackOff back_off;
};

// One call's rows: of each part a header, and where its values go.
struct RemoteRows::Asked {
  struct Part {
    ShardDescription::Id id;
    std::size_t wanted;                // an index
    std::vector<std::int64_t> local;   // rows
    std::vector<std::size_t> indexes;  // into the wanted rows
    std::size_t row_bytes;
  };
  std::vector<Part> parts;
  std::size_t bytes = 0;
  Part& part(const ShardDescription::Id& id, std::size_t wanted, std::size_t row_bytes) {
    if (parts.empty() || parts.back().id != id || parts.back().wanted != wanted) {
      const auto at = std::ranges::find_if(
          parts, [&](const Part& one) { return one.id == id && one.wanted == wanted; });
      if (at != parts.end()) return *at;
      parts.push_back({id, wanted, {}, {}, row_bytes});
    }
    return parts.back();
  }
  void miss(RowsRead& read) const {
    for (const Part& one : parts) {
      std::vector<std::size_t>& missing = read.missing[one.wanted];
      missing.insert(missing.end(), one.indexes.begin(), one.indexes.end());
    }
  }
};

struct RemoteRows::Call {
  Link* link;
  Asked asked;
};

RemoteRows::RemoteRows(rpc::Reactor& reactor, rpc::Network& network, RowStreamOptions options,
                       std::uint64_t number)
    : reactor_(reactor), network_(network), options_(std::move(options)), number_(number) {
  for (const ShardAddress& first : first_shards(options_)) {
    links_.push_back(std::make_unique<Link>());
    links_.back()->at = first;
  }
  for (std::size_t i = 0; i < options_.ps.size(); ++i)
    tasks_.spawn("keep a link to a shard", keep(*links_[i]));
}

RemoteRows::~RemoteRows() = default;

// ---- links ----

rpc::Task<void> RemoteRows::keep(Link& link) {
  for (;;) {
    std::exception_ptr error;
    try {
      co_await converse(link);
    } catch (const Error&) {
      error = std::current_exception();
    }
    link.connection.reset();
    link.error = error;
    for (auto& waiting : std::exchange(waiting_, {})) waiting->fulfill();
    kj::Promise<void> pause = reactor_.sleep(link.back_off.next());
    co_await kj::mv(pause);
  }
}

// Ends with the connection.
rpc::Task<void> RemoteRows::converse(Link& link) {
  kj::Promise<std::unique_ptr<rpc::Connection>> dialling =
      connect_reader(reactor_, network_, options_, number_, link.at);
  std::unique_ptr<rpc::Connection> connection = co_await kj::mv(dialling);
  add_links(link, connection->peer().endpoints);
  for (;;) {
    auto client = connection->bootstrap<wire::Shard>();
    link.description = co_await describe_shard(reactor_, client);
    link.known = true;
    link.outdated_now = false;
    link.error = nullptr;
    link.back_off.reset();
    if (link.connection == nullptr) link.connection = std::move(connection);
    lay();
    for (auto& waiting : std::exchange(waiting_, {})) waiting->fulfill();
    auto outdated = kj::newPromiseAndFulfiller<void>();
    link.outdated = kj::mv(outdated.fulfiller);
    bool ended = false;
    kj::Promise<void> end = link.connection->on_disconnect().then([&ended] { ended = true; });
    kj::Promise<void> either = kj::mv(outdated.promise).exclusiveJoin(kj::mv(end));
    co_await kj::mv(either);
    if (ended) throw UnavailableError("the connection has ended");
    connection = std::move(link.connection);
  }
}

void RemoteRows::add_links(const Link& first, std::uint32_t endpoints) {
  if (first.at.endpoint != 1) return;
  const std::uint32_t count = std::max<std::uint32_t>(endpoints, 2) - 1;
  std::uint32_t there = 0;
  for (const auto& link : links_) {
    if (link->at.ps != first.at.ps) continue;
    ++there;
    link->of = count;
  }
  for (; there < count; ++there) {
    links_.push_back(std::make_unique<Link>());
    Link& link = *links_.back();
    link.at = {first.at.ps, first.at.address, there + 1};
    link.of = count;
    tasks_.spawn("keep a link to a shard", keep(link));
  }
}

// Where rows are, by the descriptions of now.
void RemoteRows::lay() {
  places_.clear();
  for (const auto& link : links_)
    if (link->at.endpoint <= link->of)
      for (const auto& [id, part] : link->description.parts)
        places_[part.variable->name].push_back({part.rows, link.get(), id});
  for (auto& [name, places] : places_)
    std::ranges::sort(places, {}, [](const Place& place) { return place.rows.begin; });
}

bool RemoteRows::all_known() const {
  return std::ranges::all_of(
      links_, [](const auto& link) { return link->known || link->at.endpoint > link->of; });
}

rpc::Task<bool> RemoteRows::known(Duration patience) {
  const TimePoint until = now() + patience;
  while (!all_known()) {
    for (const auto& link : links_)
      if (is_refusal(link->error)) std::rethrow_exception(link->error);
    if (now() >= until) co_return false;
    co_await description(until);
  }
  co_return true;
}

// Waits for one, or until a link has ended.
kj::Promise<void> RemoteRows::description(TimePoint until) {
  auto news = kj::newPromiseAndFulfiller<void>();
  waiting_.push_back(kj::mv(news.fulfiller));
  return kj::mv(news.promise).exclusiveJoin(reactor_.sleep(until - now()));
}

// A shard that is away by now does not count.
bool RemoteRows::is_described_anew() const {
  return std::ranges::any_of(
      links_, [](const auto& link) { return link->outdated_now && link->error == nullptr; });
}

std::shared_ptr<const VariableSpec> RemoteRows::variable(const std::string& name) const {
  const auto at = places_.find(name);
  if (at == places_.end()) return nullptr;
  const Place& place = at->second.front();
  return place.link->description.parts.at(place.id).variable;
}

std::uint64_t RemoteRows::seed() const {
  for (const auto& link : links_)
    if (link->known) return link->description.seed;
  return 0;
}

// ---- rows ----

void RemoteRows::verify(std::span<const RowsWanted> wanted) const {
  for (const RowsWanted& one : wanted) {
    const auto spec = variable(one.variable);
    if (spec == nullptr) {
      if (!all_known()) continue;  // its rows are missing
      std::string names;
      for (const auto& [name, places] : places_) names += str(names.empty() ? "" : ", ", name);
      throw NotFoundError(str("no ps has a variable '", one.variable, "'; they have ", names));
    }
    for (const std::int64_t row : one.rows)
      if (row < 0 || row >= spec->rows())
        throw InvalidArgumentError(str("row ", row, " of '", one.variable,
                                       "' is asked for, which has ", spec->rows(), " rows"));
  }
}

const RemoteRows::Place* RemoteRows::find(const std::vector<Place>& places,
                                          std::int64_t row) const {
  auto at = std::ranges::upper_bound(places, row, {},
                                     [](const Place& place) { return place.rows.begin; });
  if (at == places.begin()) return nullptr;
  --at;
  return row < at->rows.end ? &*at : nullptr;
}

rpc::Task<void> RemoteRows::read(std::span<const RowsWanted> wanted, Duration patience,
                                 RowsRead& read) {
  const TimePoint until = now() + patience;
  co_await known(patience);
  verify(wanted);
  read.missing.clear();
  for (const RowsWanted& one : wanted) {
    read.missing.emplace_back(one.rows.size());
    std::iota(read.missing.back().begin(), read.missing.back().end(), 0);
  }
  // A shard that describes itself otherwise by now is asked again, once.
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t outdated = outdated_;
    std::vector<Call> calls = route(wanted, read);
    std::vector<kj::Promise<void>> all;
    for (Call& call : calls) all.push_back(ask(*call.link, call.asked, wanted, until, read));
    co_await rpc::all_ended(std::move(all));
    if (outdated == outdated_) break;
    while (is_described_anew() && now() < until) co_await description(until);
  }
  for (auto& missing : read.missing) std::ranges::sort(missing);
}

// The calls for what is missing, which then is what no call asks for.
std::vector<RemoteRows::Call> RemoteRows::route(std::span<const RowsWanted> wanted,
                                                RowsRead& read) {
  std::map<Link*, Asked> open;
  std::vector<Call> calls;
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    const auto places = places_.find(wanted[w].variable);
    for (const std::size_t i : std::exchange(read.missing[w], {})) {
      const std::int64_t row = wanted[w].rows[i];
      const Place* const place = places == places_.end() ? nullptr : find(places->second, row);
      if (place == nullptr || place->link->connection == nullptr) {
        read.missing[w].push_back(i);
        continue;
      }
      const std::size_t bytes = place->link->description.parts.at(place->id).row_bytes();
      Asked& asked = open[place->link];
      if (asked.bytes > 0 && asked.bytes + bytes > kCallBytesMax)
        calls.push_back({place->link, std::exchange(asked, {})});
      asked.bytes += bytes;
      Asked::Part& part = asked.part(place->id, w, bytes);
      part.local.push_back(row - place->rows.begin);
      part.indexes.push_back(i);
    }
  }
  for (auto& [link, asked] : open) calls.push_back({link, std::move(asked)});
  // By shard and not by address in memory, so that a simulation repeats.
  std::ranges::stable_sort(calls, {}, [](const Call& call) {
    return std::pair(call.link->at.ps, call.link->at.endpoint);
  });
  return calls;
}

rpc::Task<void> RemoteRows::ask(Link& link, Asked& asked, std::span<const RowsWanted> wanted,
                                TimePoint until, RowsRead& read) {
  std::size_t rows = 0;
  for (const Asked::Part& part : asked.parts) rows += part.local.size();
  auto request = link.connection->bootstrap<wire::Shard>().readRowsRequest();
  const std::uint64_t description = link.description.number;
  request.setDescription(description);
  auto headers = request.initHeaders(static_cast<unsigned>(asked.parts.size()));
  auto ids = request.initIds(static_cast<unsigned>(rows * sizeof(std::int64_t)));
  kj::byte* next = ids.begin();
  for (unsigned i = 0; i < headers.size(); ++i) {
    const Asked::Part& part = asked.parts[i];
    headers[i].setVariable(part.id.first);
    headers[i].setPart(part.id.second);
    headers[i].setRows(static_cast<std::uint32_t>(part.local.size()));
    std::memcpy(next, part.local.data(), part.local.size() * sizeof(std::int64_t));
    next += part.local.size() * sizeof(std::int64_t);
  }
  try {
    kj::Promise<capnp::Response<wire::Shard::ReadRowsResults>> sent = request.send();
    auto answered = reactor_.with_deadline(kj::mv(sent), std::max(Duration(0), until - now()),
                                           "rows of a shard");
    const auto answer = co_await kj::mv(answered);
    if (answer.getDescription() != description) {
      if (link.outdated.get() != nullptr) link.outdated->fulfill();
      link.outdated_now = true;
      ++outdated_;
      asked.miss(read);
      co_return;
    }
    const auto values = answer.getValues();
    if (values.size() != asked.bytes)
      throw DataLossError(str("a ps answers with ", values.size(), " bytes of rows, ", asked.bytes,
                              " were asked for"));
    read.step = std::max(read.step, answer.getStep());
    const auto* from = reinterpret_cast<const std::byte*>(values.begin());
    for (const Asked::Part& part : asked.parts)
      for (const std::size_t index : part.indexes) {
        std::memcpy(wanted[part.wanted].out + index * part.row_bytes, from, part.row_bytes);
        from += part.row_bytes;
      }
  } catch (const Error&) {
    asked.miss(read);
  }
}

}  // namespace cairn::serving
