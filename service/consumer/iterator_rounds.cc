// A consumer of a group: which rounds it has, which are in the order, and what is handed out.
#include <algorithm>
#include <limits>

#include "service/consumer/consumer_calls.h"
#include "service/consumer/iterator_core.h"

namespace cairn::service {
namespace {

using rpc::Task;

}  // namespace

std::size_t DataServiceIterator::Rounds::here_of(const DataWorkerPlace& worker) const {
  const auto begin = here.lower_bound({worker, 0});
  const auto end = here.upper_bound({worker, std::numeric_limits<std::uint64_t>::max()});
  return static_cast<std::size_t>(std::distance(begin, end));
}

// A round that is not later than one in the order came before and is sent again, or comes too late:
// it was on its way to another consumer, whose group this one's has replaced.
void DataServiceIterator::Core::put(const DataWorkerPlace& worker, GotElement element) {
  if (!rounds) return buffer.put(worker, element.number, std::move(element.columns));
  const Round round{worker, (element.number - 1) / options.num_consumers};
  const auto last = rounds->last.find(worker);
  if (last != rounds->last.end() && round.number <= last->second)
    return buffer.discard(worker, element.number);
  rounds->here.try_emplace(round, std::move(element));
  rounds->tell();
}

// ---- the dispatcher ----

// Rounds that come are reported at once, in a call of their own: the other waits for the order.
void DataServiceIterator::Core::begin_rounds() {
  tasks.spawn("following the order of rounds", follow_rounds(true));
  tasks.spawn("telling which rounds are here", follow_rounds(false));
}

Task<void> DataServiceIterator::Core::follow_rounds(bool wait) {
  try {
    while (!finished) {
      while (!wait && (rounds->group == 0 || !rounds->untold)) {
        auto came = rounds->came.wait();
        co_await kj::mv(came);
      }
      co_await ask_rounds(wait && rounds->group != 0);
    }
  } catch (const CancelledError&) {
    throw;
  } catch (const Error&) {
    fail();
  }
}

// A worker that is gone: its rounds are dropped when the dispatcher has heard that they are not
// here, for until then it may put them into the order.
Task<void> DataServiceIterator::Core::ask_rounds(bool wait) {
  RoundReport report{.index = options.consumer_index,
                     .consumer = options.identity,
                     .group = rounds->group,
                     .sequence = ++rounds->sequence,
                     .base = rounds->base,
                     .known = {rounds->known.begin(), rounds->known.end()},
                     .here = {},
                     .taken = buffer.taken()};
  const std::set<DataWorkerPlace> gone = rounds->gone;
  rounds->untold = false;
  for (const auto& [round, element] : rounds->here)
    if (!rounds->closing && !gone.contains(round.worker)) report.here.insert(round);
  std::function<Task<RoundOrder>(wire::DataDispatcher::Client)> call =
      [of = job, report = std::move(report), wait](wire::DataDispatcher::Client client) {
        return send_rounds(kj::mv(client), of, report, wait);
      };
  const RoundOrder order = co_await dispatcher.ask(std::move(call), "reading in rounds");
  apply(order);
  for (const DataWorkerPlace& worker : gone) {
    if (rounds->gone.erase(worker) == 0) continue;  // it is back
    std::erase_if(rounds->here, [&](const auto& one) { return one.first.worker == worker; });
  }
}

void DataServiceIterator::Core::apply(const RoundOrder& order) {
  Rounds& own = *rounds;
  if (own.group == 0) own.base = order.begin;
  if (std::exchange(own.group, order.group) == 0) own.came.notify_all();
  for (std::size_t i = 0; i < order.rounds.size(); ++i) {
    if (order.begin + i != own.base + own.known.size()) continue;  // known from another answer
    own.known.push_back(order.rounds[i]);
    deliver(order.rounds[i]);
  }
  for (; own.base < order.base && !own.known.empty(); ++own.base) own.known.pop_front();
  own.missing = order.missing;
  own.behind = order.behind;
  if (own.missing.empty()) own.complete = reactor.now();
  changed.notify_all();
  demanded->notify_all();
}

// An earlier round of the same worker that is still here lacks somewhere for good.
void DataServiceIterator::Core::deliver(const Round& round) {
  auto at = rounds->here.lower_bound({round.worker, 0});
  while (at != rounds->here.end() && at->first < round) {
    buffer.discard(at->first.worker, at->second.number);
    at = rounds->here.erase(at);
  }
  if (at == rounds->here.end() || at->first != round)
    throw FailedPreconditionError(
        str(job_text(), ": the other consumers of the group were given a round of the data worker ",
            "at ", round.worker.address, " that is not here; start all of them again"));
  rounds->last[round.worker] = round.number;
  buffer.put(round.worker, at->second.number, std::move(at->second.columns));
  rounds->here.erase(at);
}

// The job has ended. What the order holds when the dispatcher has heard that nothing more is here
// is what it holds for all.
Task<void> DataServiceIterator::Core::close_rounds() {
  rounds->closing = true;
  co_await ask_rounds(false);
}

std::string DataServiceIterator::Core::waits_text() const {
  const auto& waiting = rounds->missing.empty() ? rounds->behind : rounds->missing;
  if (waiting.empty()) return "the pipelines of its data workers are slow";
  return str("it is read in rounds, and ", consumers_text(waiting, options.num_consumers),
             rounds->missing.empty() ? " takes none or is given none" : " is not there");
}

}  // namespace cairn::service
