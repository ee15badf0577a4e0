#include "service/consumer/data_service_iterator.h"

#include <algorithm>

#include "core/base/log.h"
#include "data/stage/dataset_wire.h"
#include "rpc/loop/error_wire.h"
#include "service/consumer/consumer_calls.h"
#include "service/consumer/iterator_core.h"
#include "service/dispatcher/dispatcher_server.h"

namespace cairn::service {
namespace {

using Dispatching = wire::DataDispatcher::Client;
using rpc::Task;

}  // namespace

DataServiceIterator::Core::Core(rpc::Reactor& given_reactor, rpc::Network& given_network,
                                const Dataset& dataset, const ElementSpec& element,
                                DataServiceOptions given)
    : reactor(given_reactor),
      network(given_network),
      spec(element),
      options(std::move(given)),
      link{.patience = options.patience},
      description(std::make_shared<const std::vector<std::byte>>(serialize(dataset))),
      dispatcher(reactor, network, options.dispatcher, hello(), "the dispatcher", link),
      demand{.last = reactor.now()},
      told{.workers = {}, .met = reactor.now()},
      buffer([loop = reactor.mailbox(), signal = demanded] {
        loop->post([signal] { signal->notify_all(); });
      }) {
  if (options.identity == 0) options.identity = random_number();
  if (options.num_consumers > 0) {
    rounds = std::make_unique<Rounds>();
    rounds->complete = reactor.now();
  }
  tasks.spawn("reading through the data service", follow());
}

rpc::Hello DataServiceIterator::Core::hello() const {
  rpc::Hello hello;
  hello.cluster = options.cluster;
  hello.token = options.token;
  hello.role = options.role;
  hello.task = options.task;
  return hello;
}

std::string DataServiceIterator::Core::job_text() const {
  return options.job_name.empty() ? str("job ", job) : str("job \"", options.job_name, "\"");
}

// The pipeline's error, as text.
void DataServiceIterator::Core::fail_with(const std::string& text, const DataWorkerPlace& place) {
  ErrorParts parts = rpc::from_error_text(text);
  parts.message = str("the data worker at ", place.address, ": ", parts.message);
  try {
    throw_error(parts);
  } catch (const Error&) {
    fail();
  }
}

void DataServiceIterator::Core::fail() {
  if (!error) error = std::current_exception();
  buffer.close();
  changed.notify_all();
  demanded->notify_all();
}

// ---- the dispatcher ----

Task<std::uint64_t> DataServiceIterator::Core::open_job() {
  // A job of one's own has a key too, so that a repeated call finds the job that it has made.
  const std::uint64_t own = options.own_job == 0 ? options.identity : options.own_job;
  const std::string key = options.job_name.empty() ? str("#", own) : options.job_name;
  std::function<Task<std::uint64_t>(Dispatching)> call =
      [key, mode = options.mode, bytes = description, group = options.num_consumers](
          Dispatching client) { return send_open_job(kj::mv(client), key, mode, bytes, group); };
  const std::uint64_t made = co_await dispatcher.ask(std::move(call), "beginning a job");
  co_return made;
}

Task<void> DataServiceIterator::Core::follow() {
  try {
    if (options.job_name.starts_with('#'))
      throw InvalidArgumentError(str("a job's name must not begin with \"#\": ", options.job_name));
    verify_group(options.num_consumers, options.consumer_index, options.job_name);
    job = co_await open_job();
    if (rounds) begin_rounds();
    std::uint64_t seen = 0;
    while (!finished) {
      std::function<Task<Watched>(Dispatching)> call =
          [of = job, me = options.identity, count = buffer.taken(), seen](Dispatching client) {
            return send_watch(kj::mv(client), of, me, count, seen);
          };
      const Watched watched = co_await dispatcher.ask(std::move(call), "following a job");
      seen = watched.change;
      told.workers = watched.workers;
      if (!told.workers.empty()) told.met = reactor.now();
      if (!resting) meet(told.workers);
      if (watched.finished && rounds) co_await close_rounds();
      finished = watched.finished;
      if (finished) sources.clear();  // a worker asked for more may know nothing of the job by then
      rest_if_idle();
      changed.notify_all();
    }
  } catch (const CancelledError&) {
    throw;
  } catch (const Error&) {
    fail();
  }
}

void DataServiceIterator::Core::meet(const std::vector<DataWorkerPlace>& workers) {
  std::vector<DataWorkerPlace> gone;
  for (const auto& [place, source] : sources)
    if (std::ranges::find(workers, place) == workers.end()) gone.push_back(place);
  for (const DataWorkerPlace& place : gone) drop(place);
  for (const DataWorkerPlace& place : workers) {
    if (rounds) rounds->gone.erase(place);
    auto& source = sources[place];
    if (source) continue;
    source = std::make_unique<Source>();
    source->place = place;
    source->link = std::make_unique<Link>(reactor, network, rpc::Address::parse(place.address),
                                          hello(), "the data worker", link);
    source->tasks.spawn(str("reading from ", place.address), read_from(source.get()));
    source->tasks.spawn(str("acknowledging to ", place.address), acknowledge_on(source.get()));
  }
  buffer.set_low(quota() / 2);
  demanded->notify_all();
}

void DataServiceIterator::Core::rest_if_idle() {
  if (const std::uint64_t taken = buffer.taken(); taken != demand.taken)
    demand.taken = taken, demand.last = reactor.now();
  if (rounds || resting || finished || demand.calls > 0 ||
      reactor.now() - demand.last < options.idle)
    return;
  if (!buffer.give_back()) return;
  resting = true;
  sources.clear();
}

void DataServiceIterator::Core::wake() {
  if (!std::exchange(resting, false)) return;
  meet(told.workers);
}

// A worker that is lost: what it had sent and was not acknowledged is read again elsewhere, but in
// mode OFF, where nobody gives it again. A round in the order all consumers have, and read.
void DataServiceIterator::Core::drop(const DataWorkerPlace& place) {
  if (rounds) {
    rounds->gone.insert(place);
    rounds->tell();
  } else if (options.mode != ProcessingMode::kOff) {
    buffer.remove(place);
  }
  sources.erase(place);
}

// ---- the program ----

void DataServiceIterator::Core::verify_waiting(Duration since) const {
  const Duration now = reactor.now();
  const auto seconds = [](Duration of) {
    return fixed(std::chrono::duration<double>(of).count(), 0);
  };
  if (job != 0 && sources.empty() && now - told.met >= options.patience)
    throw UnavailableError(str(job_text(), ": the dispatcher at ", options.dispatcher.str(),
                               " has had no data worker "
                               "for ",
                               seconds(options.patience),
                               " s; start some: cairn-data --role worker --dispatcher ",
                               options.dispatcher.str()));
  if (rounds && !rounds->missing.empty() && now - rounds->complete >= options.patience)
    throw UnavailableError(str(job_text(), " is read in rounds, and ",
                               consumers_text(rounds->missing, options.num_consumers),
                               " has not been there for ", seconds(options.patience),
                               " s; start all consumers of the group, with the same ",
                               "num_consumers and a consumer_index each"));
  if (rounds && now - since >= options.next_deadline)
    throw DeadlineExceededError(str(job_text(), " gave no round for ",
                                    seconds(options.next_deadline), " s: ", waits_text()));
  if (now - since >= options.next_deadline)
    throw DeadlineExceededError(
        str(job_text(), " gave no element for ", seconds(options.next_deadline),
            " s: its pipeline is slow, or other consumers of it hold elements that they do not "
            "take; end those, or wait longer (DataServiceOptions::next_deadline)"));
}

Task<void> DataServiceIterator::Core::leave(DataServiceStatistics& statistics) {
  std::function<Task<Counted>(Dispatching)> call = [of = job, me = options.identity,
                                                    count = buffer.taken()](Dispatching client) {
    return send_leave(kj::mv(client), of, me, count);
  };
  try {
    const Counted counted = co_await dispatcher.ask(std::move(call), "leaving a job");
    statistics.job_elements = counted.elements;
    statistics.job_handed = counted.handed;
  } catch (const NotFoundError&) {
    // The dispatcher has forgotten the job since it finished. Its elements were all handed out, and
    // only the counts are lost.
  }
  left = true;
  sources.clear();
}

DataServiceIterator::DataServiceIterator(rpc::Reactor& reactor, rpc::Network& network,
                                         const Dataset& dataset, DataServiceOptions options)
    : spec_(dataset.element_spec()),
      core_(std::make_unique<Core>(reactor, network, dataset, spec_, std::move(options))) {}

DataServiceIterator::~DataServiceIterator() = default;

// Lives as long as a call of next(), and counts it as demand.
struct DataServiceIterator::Asking {
  explicit Asking(Core& of) : core(of) {
    ++core.demand.calls;
    core.wake();
  }
  ~Asking() {
    --core.demand.calls;
    core.demand.last = core.reactor.now();
  }
  Core& core;
};

Task<std::optional<Element>> DataServiceIterator::next() {
  Core& core = *core_;
  const Duration since = core.reactor.now();
  const Asking asking(core);
  for (;;) {
    if (core.left) co_return std::nullopt;
    if (core.error) std::rethrow_exception(core.error);
    if (auto element = core.buffer.take()) co_return element;
    if (core.finished) {
      co_await core.leave(statistics_);
      continue;
    }
    core.verify_waiting(since);
    auto change = core.changed.wait().exclusiveJoin(core.reactor.sleep(std::chrono::seconds(1)));
    co_await kj::mv(change);
  }
}

std::optional<Element> DataServiceIterator::take() { return core_->buffer.take(); }

DataServiceStatistics DataServiceIterator::statistics() const {
  DataServiceStatistics statistics = statistics_;
  statistics.handed = core_->buffer.taken();
  return statistics;
}

Task<void> DataServiceIterator::settle() {
  try {
    auto settled = core_->reactor.with_deadline(core_->settle(), std::chrono::seconds(1),
                                                "acknowledging what was handed out");
    co_await kj::mv(settled);
  } catch (const Error&) {
    // Elements that could not be acknowledged are handed out again, and counted as duplicates.
  }
}

}  // namespace cairn::service
