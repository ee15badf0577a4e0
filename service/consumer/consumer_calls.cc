#include "service/consumer/consumer_calls.h"

#include "core/graph/wire/wire.h"
#include "service/dispatcher/round_wire.h"
#include "service/worker/worker_job.h"

namespace cairn::service {
namespace {

using rpc::Task;

Element read_element(wire::DataElement::Reader in, const ElementSpec& spec) {
  Element element;
  if (in.hasPacked())
    element = unpack(reinterpret_cast<const std::byte*>(in.getPacked().begin()),
                     in.getPacked().size(), in.getRawBytes());
  for (auto column : wire::bounded(in.getColumns(), wire::kColumnsMax, "columns"))
    element.push_back(wire::read(column));
  bool fits = element.size() == spec.columns.size();
  for (std::size_t i = 0; fits && i < element.size(); ++i)
    fits = element[i].dtype() == spec.columns[i].type.dtype &&
           spec.columns[i].type.shape.admits(element[i].shape());
  if (!fits)
    throw InvalidArgumentError(
        "a data worker sent an element that is not of this dataset's columns: does it read other "
        "files than those that the description is of?");
  return element;
}

}  // namespace

Task<std::uint64_t> send_open_job(wire::DataDispatcher::Client client, std::string key,
                                  ProcessingMode mode, Bytes description, std::uint32_t group) {
  auto request = client.openJobRequest();
  request.setKey(key);
  request.setMode(static_cast<std::uint8_t>(mode));
  request.setConsumers(group);
  request.setDescription(
      {reinterpret_cast<const kj::byte*>(description->data()), description->size()});
  kj::Promise<capnp::Response<wire::DataDispatcher::OpenJobResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  co_return reply.getJob();
}

Task<Watched> send_watch(wire::DataDispatcher::Client client, std::uint64_t job,
                         std::uint64_t consumer, std::uint64_t handed, std::uint64_t seen) {
  auto request = client.watchRequest();
  request.setJob(job);
  request.setConsumer(consumer);
  request.setHanded(handed);
  request.setSeen(seen);
  kj::Promise<capnp::Response<wire::DataDispatcher::WatchResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  Watched watched;
  watched.change = reply.getChange();
  watched.finished = reply.getFinished();
  for (auto worker : wire::bounded(reply.getWorkers(), kWorkersMax, "data workers"))
    watched.workers.push_back({wire::read_name(worker.getAddress()), worker.getIncarnation()});
  co_return watched;
}

Task<Counted> send_leave(wire::DataDispatcher::Client client, std::uint64_t job,
                         std::uint64_t consumer, std::uint64_t handed) {
  auto request = client.leaveRequest();
  request.setJob(job);
  request.setConsumer(consumer);
  request.setHanded(handed);
  kj::Promise<capnp::Response<wire::DataDispatcher::LeaveResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  co_return Counted{reply.getElements(), reply.getHanded()};
}

Task<Got> send_get(wire::DataWorker::Client client, std::uint64_t job, std::uint64_t consumer,
                   std::uint32_t index, std::uint32_t most, Compression compression,
                   const ElementSpec* spec) {
  auto request = client.getRequest();
  request.setJob(job);
  request.setConsumer(consumer);
  request.setMost(most);
  request.setIndex(index);
  request.setCompression(static_cast<std::uint8_t>(compression));
  kj::Promise<capnp::Response<wire::DataWorker::GetResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  Got got;
  got.error = {reply.getError().begin(), reply.getError().size()};
  for (auto element : wire::bounded(reply.getElements(), kElementsAtOnceMax, "elements"))
    got.elements.push_back({element.getNumber(), read_element(element, *spec)});
  co_return got;
}

Task<RoundOrder> send_rounds(wire::DataDispatcher::Client client, std::uint64_t job,
                             RoundReport report, bool wait) {
  auto request = client.roundsRequest();
  request.setJob(job);
  request.setIndex(report.index);
  request.setConsumer(report.consumer);
  request.setGroup(report.group);
  request.setSequence(report.sequence);
  request.setBase(report.base);
  write(request.initKnown(static_cast<unsigned>(report.known.size())), report.known);
  write(request.initHere(static_cast<unsigned>(report.here.size())), report.here);
  request.setTaken(report.taken);
  request.setWait(wait);
  kj::Promise<capnp::Response<wire::DataDispatcher::RoundsResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  RoundOrder order{.group = reply.getGroup(), .base = reply.getBase(), .begin = reply.getBegin()};
  order.rounds = read_rounds(reply.getRounds());
  for (const std::uint32_t index : wire::bounded(reply.getMissing(), kGroupMax, "consumers"))
    order.missing.push_back(index);
  for (const std::uint32_t index : wire::bounded(reply.getBehind(), kGroupMax, "consumers"))
    order.behind.push_back(index);
  co_return order;
}

Task<void> send_acknowledge(wire::DataWorker::Client client, std::uint64_t job,
                            std::vector<std::uint64_t> numbers) {
  auto request = client.acknowledgeRequest();
  request.setJob(job);
  auto out = request.initNumbers(static_cast<unsigned>(numbers.size()));
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, numbers[i]);
  kj::Promise<capnp::Response<wire::DataWorker::AcknowledgeResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
}

}  // namespace cairn::service
