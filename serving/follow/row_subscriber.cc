#include "serving/follow/row_subscriber.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "serving/follow/shard_calls.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;

// Bytes of one answer: while it is made the shard serves no push.
constexpr std::size_t kAskedMin = std::size_t{64} << 10, kAskedMax = std::size_t{1} << 20;
// A variable may be made after its ps has opened.
constexpr Duration kVariablePatience = 10s;
constexpr VariableId kNoVariable = ~VariableId{0};

}  // namespace

struct RowSubscriber::Shard {
  std::size_t number = 0;
  ShardAddress at;
  std::uint32_t of = 1;    // shards of this ps
  bool known = false;      // how many there are
  bool left_over = false;  // the ps has fewer shards by now
  ShardDescription description;
  std::vector<VariableId> variables;  // to ask for; none: all
  std::set<std::string> names;        // of the wanted ones, that are here
  TimePoint described_at;
  std::uint64_t incarnation = 0, cursor = 0;
  std::set<ShardDescription::Id> wanted, incomplete;
  ShardProgress progress;
  bool queued = false;
  kj::Own<kj::PromiseFulfiller<void>> room;
  TimePoint away_since;
  std::exception_ptr error;  // why it does not answer; null: it does
  BackOff back_off;
};

RowSubscriber::RowSubscriber(rpc::Reactor& reactor, rpc::Network& network, RowStreamOptions options,
                             std::uint64_t number, std::function<void()> news)
    : reactor_(reactor),
      network_(network),
      options_(std::move(options)),
      number_(number),
      news_(std::move(news)) {
  if (options_.bytes_per_second == 0)
    throw InvalidArgumentError("a stream of rows takes at least a byte a second");
  for (const ShardAddress& first : first_shards(options_)) {
    auto shard = std::make_unique<Shard>();
    shard->number = shards_.size();
    shard->at = first;
    shards_.push_back(std::move(shard));
  }
  const TimePoint now = this->now();
  for (std::size_t i = 0; i < options_.ps.size(); ++i) {
    shards_[i]->away_since = now;
    tasks_.spawn("follow a shard", follow(*shards_[i]));
  }
}

RowSubscriber::~RowSubscriber() = default;

std::vector<RowSubscriber::Delivery> RowSubscriber::take() {
  std::vector<Delivery> all(std::make_move_iterator(queue_.begin()),
                            std::make_move_iterator(queue_.end()));
  queue_.clear();
  for (const auto& shard : shards_) {
    shard->queued = false;
    if (shard->room.get() != nullptr) shard->room->fulfill();
    shard->room = nullptr;
  }
  return all;
}

bool RowSubscriber::all_known() const {
  return std::ranges::all_of(shards_, [](const auto& shard) { return shard->known; });
}

std::vector<bool> RowSubscriber::left_over() const {
  std::vector<bool> all;
  for (const auto& shard : shards_) all.push_back(shard->left_over);
  return all;
}

std::vector<RowSubscriber::Away> RowSubscriber::away() const {
  std::vector<Away> all;
  for (const auto& shard : shards_)
    if (shard->error != nullptr && !shard->left_over)
      all.push_back({str(shard->at.address.str(),
                         shard->of > 1 ? str(" shard ", shard->at.endpoint - 1) : std::string()),
                     error_parts(shard->error).message, shard->away_since});
  return all;
}

void RowSubscriber::verify() const {
  for (const auto& shard : shards_)
    if (is_refusal(shard->error)) std::rethrow_exception(shard->error);
  if (!all_known()) return;
  for (const std::string& name : options_.variables) {
    TimePoint newest{};
    bool here = false, all = true;
    for (const auto& shard : shards_) {
      all = all && (shard->description.number != 0 || shard->left_over);
      here = here || shard->names.contains(name);
      newest = std::max(newest, shard->described_at);
    }
    if (!all || here || now() - newest < kVariablePatience) continue;
    std::set<std::string> there;
    for (const auto& shard : shards_)
      for (const auto& [id, part] : shard->description.parts) there.insert(part.variable->name);
    std::string names;
    for (const std::string& one : there) names += str(names.empty() ? "" : ", ", one);
    throw NotFoundError(
        str("no ps has a variable '", name, "'; they have ", names.empty() ? "none" : names));
  }
}

// ---- one shard ----

rpc::Task<void> RowSubscriber::follow(Shard& shard) {
  for (;;) {
    std::exception_ptr error;
    try {
      co_await converse(shard);
    } catch (const Error&) {
      error = std::current_exception();
    }
    if (shard.error == nullptr) shard.away_since = now();
    shard.error = error;
    news_();
    kj::Promise<void> pause = reactor_.sleep(shard.back_off.next());
    co_await kj::mv(pause);
  }
}

// Ends with the connection, by its error.
rpc::Task<void> RowSubscriber::converse(Shard& shard) {
  kj::Promise<std::unique_ptr<rpc::Connection>> dialling =
      connect_reader(reactor_, network_, options_, number_, shard.at);
  const std::unique_ptr<rpc::Connection> connection = co_await kj::mv(dialling);
  add_shards(shard, connection->peer().endpoints);
  auto client = connection->bootstrap<wire::Shard>();
  ShardDescription first = co_await describe_shard(reactor_, client);
  use(shard, std::move(first));
  for (;;) {
    kj::Promise<void> taken = room(shard);
    co_await kj::mv(taken);
    auto request = client.changesRequest();
    request.setSubscriber(number_);
    request.setDescription(shard.description.number);
    request.setIncarnation(shard.incarnation);
    request.setCursor(shard.cursor);
    const std::size_t rate = std::max<std::size_t>(options_.bytes_per_second / shard.of, 1);
    request.setBytesMax(static_cast<std::uint32_t>(std::clamp(rate / 10, kAskedMin, kAskedMax)));
    auto variables = request.initVariables(static_cast<unsigned>(shard.variables.size()));
    for (unsigned i = 0; i < variables.size(); ++i) variables.set(i, shard.variables[i]);
    const TimePoint asked = now();
    kj::Promise<capnp::Response<wire::Shard::ChangesResults>> sent = request.send();
    auto answered = reactor_.with_deadline(kj::mv(sent), kShardDeadline, "the changes of a shard");
    const auto answer = co_await kj::mv(answered);
    if (std::exchange(shard.error, nullptr) != nullptr) news_();
    shard.back_off.reset();
    if (answer.getDescription() != shard.description.number) {
      ShardDescription another = co_await describe_shard(reactor_, client);
      use(shard, std::move(another));
      continue;
    }
    ShardChanges changes = read_changes(answer, shard.description);
    // Another subscription: each of its tables begins anew, some of them with a later answer.
    if (std::exchange(shard.incarnation, answer.getIncarnation()) != shard.incarnation)
      shard.incomplete = shard.wanted;
    shard.cursor = answer.getCursor();
    const Duration age = std::chrono::microseconds(
        std::min<std::uint64_t>(answer.getAgeUs(), std::uint64_t{1} << 50));
    const std::size_t bytes = changes.bytes;
    const bool more = answer.getMore();
    deliver(shard, std::move(changes), answer.getStep(), asked - age);
    kj::Promise<void> pause = reactor_.sleep(pause_after(shard, bytes, more, asked));
    co_await kj::mv(pause);
  }
}

void RowSubscriber::use(Shard& shard, ShardDescription description) {
  const bool anew = description.session != shard.description.session;
  shard.variables.clear();
  shard.names.clear();
  std::set<ShardDescription::Id> wanted, incomplete;
  for (const auto& [id, part] : description.parts) {
    const auto& names = options_.variables;
    if (!names.empty() && std::ranges::find(names, part.variable->name) == names.end()) continue;
    shard.names.insert(part.variable->name);
    wanted.insert(id);
    if (!names.empty() && (shard.variables.empty() || shard.variables.back() != id.first))
      shard.variables.push_back(id.first);
    if (anew || !shard.description.parts.contains(id) || shard.incomplete.contains(id))
      incomplete.insert(id);
  }
  // An empty list would mean all of them.
  if (!options_.variables.empty() && shard.variables.empty()) shard.variables = {kNoVariable};
  shard.wanted = std::move(wanted);
  shard.incomplete = std::move(incomplete);
  shard.progress.seed = description.seed;
  if (shard.described_at == TimePoint{} || anew) shard.described_at = now();
  shard.description = std::move(description);
}

// A ps has told how many endpoints it has, of which the first is no shard.
void RowSubscriber::add_shards(const Shard& first, std::uint32_t endpoints) {
  if (first.at.endpoint != 1) return;
  const std::uint32_t count = std::max<std::uint32_t>(endpoints, 2) - 1;
  std::uint32_t there = 0;
  for (const auto& shard : shards_) {
    if (shard->at.ps != first.at.ps) continue;
    ++there;
    shard->of = count;
    shard->left_over = shard->at.endpoint > count;
    shard->known = true;
  }
  for (; there < count; ++there) {
    auto shard = std::make_unique<Shard>();
    shard->number = shards_.size();
    shard->at = {first.at.ps, first.at.address, there + 1};
    shard->of = count;
    shard->known = true;
    shard->away_since = now();
    shards_.push_back(std::move(shard));
    tasks_.spawn("follow a shard", follow(*shards_.back()));
  }
}

void RowSubscriber::deliver(Shard& shard, ShardChanges changes, std::int64_t step,
                            TimePoint covered) {
  for (const auto& id : changes.begun) shard.incomplete.insert(id);
  for (const auto& id : changes.completed) shard.incomplete.erase(id);
  ShardProgress& progress = shard.progress;
  progress.step = step;
  progress.complete = shard.incomplete.empty();
  progress.ever = progress.ever || progress.complete;
  if (progress.complete) progress.covered = std::max(progress.covered, covered);
  queue_.push_back({shard.number, std::move(changes.changes), progress});
  shard.queued = true;
  news_();
}

kj::Promise<void> RowSubscriber::room(Shard& shard) {
  if (!shard.queued) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  shard.room = kj::mv(pair.fulfiller);
  return kj::mv(pair.promise);
}

Duration RowSubscriber::pause_after(const Shard& shard, std::size_t bytes, bool more,
                                    TimePoint asked) const {
  const double rate = static_cast<double>(options_.bytes_per_second) / shard.of;
  Duration pause = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / rate));
  // A shard that waits for its disk is not asked again and again meanwhile.
  if (!more)
    pause = std::max(pause, options_.every);
  else if (bytes == 0)
    pause = std::max<Duration>(pause, std::min<Duration>(options_.every, 1ms));
  return std::max(Duration(0), pause - (now() - asked));
}

}  // namespace cairn::serving
