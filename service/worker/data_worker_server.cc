#include "service/worker/data_worker_server.h"

#include "core/graph/wire/wire.h"
#include "rpc/server/server.h"
#include "service/service.capnp.h"

namespace cairn::service {
namespace {

using rpc::Task;

constexpr unsigned kAcknowledgedMax = 1u << 16;

void write(wire::DataElement::Builder out, const PackedElement& packed) {
  out.setPacked({reinterpret_cast<const kj::byte*>(packed.bytes.data()), packed.bytes.size()});
  out.setRawBytes(packed.raw_bytes);
}

class DataWorkerService final : public wire::DataWorker::Server {
 public:
  DataWorkerService(std::weak_ptr<DataWorker> worker, rpc::Connection& connection,
                    std::uint64_t number)
      : worker_(std::move(worker)), connection_(connection), number_(number) {}
  // It goes with its connection.
  ~DataWorkerService() noexcept {
    if (const auto worker = worker_.lock()) worker->connection_ended(number_);
  }

 protected:
  kj::Promise<void> get(GetContext context) override {
    return connection_.guard(get_elements(context));
  }
  kj::Promise<void> acknowledge(AcknowledgeContext context) override {
    return rpc::at_once([&] {
      allow("DataWorker.acknowledge");
      auto in = context.getParams();
      std::vector<std::uint64_t> numbers;
      for (const std::uint64_t each : wire::bounded(in.getNumbers(), kAcknowledgedMax, "elements"))
        numbers.push_back(each);
      worker()->acknowledge(in.getJob(), numbers);
    });
  }
  kj::Promise<void> status(StatusContext context) override {
    return rpc::at_once([&] { context.getResults().setJson(worker()->status_json()); });
  }

 private:
  void allow(std::string_view call) const {
    connection_.allow({rpc::Role::kCoordinator, rpc::Role::kWorker, rpc::Role::kTool}, call);
  }
  std::shared_ptr<DataWorker> worker() const {
    auto worker = worker_.lock();
    if (!worker) throw UnavailableError("this data worker has stopped");
    return worker;
  }

  Task<void> get_elements(GetContext context) {
    allow("DataWorker.get");
    connection_.verify_reading();
    auto in = context.getParams();
    const std::size_t most = std::min(std::max(1u, in.getMost()), kElementsAtOnceMax);
    const auto held = worker();
    const Sent sent =
        co_await held->get(number_, in.getJob(), in.getConsumer(), in.getIndex(), most);
    std::vector<PackedElement> packed;
    if (in.getCompression() == static_cast<std::uint8_t>(Compression::kZlib)) {
      auto packing = held->packed(in.getJob(), sent);
      packed = co_await kj::mv(packing);
    }
    auto out = context.getResults();
    if (!sent.error.empty()) out.setError(sent.error);
    auto elements = out.initElements(static_cast<unsigned>(sent.elements.size()));
    for (unsigned i = 0; i < elements.size(); ++i) {
      elements[i].setNumber(sent.elements[i].number);
      if (!packed.empty()) {
        write(elements[i], packed[i]);
        continue;
      }
      const Element& from = *sent.elements[i].columns;
      auto columns = elements[i].initColumns(static_cast<unsigned>(from.size()));
      for (unsigned j = 0; j < columns.size(); ++j) wire::write(columns[j], from[j]);
    }
  }

  const std::weak_ptr<DataWorker> worker_;
  rpc::Connection& connection_;
  const std::uint64_t number_;
};

// Consumers on other hosts cannot dial "all addresses of this host", and data workers of two hosts
// that report it would be taken for one that was started again.
void verify_reachable(const rpc::Address& listen, const std::string& advertised) {
  const bool everywhere = listen.scheme == rpc::Address::Scheme::kTcp &&
                          (listen.host == "0.0.0.0" || listen.host == "::");
  if (everywhere && advertised.empty())
    throw InvalidArgumentError(str("a data worker that listens at ", listen.str(),
                                   " has to say where consumers reach it: give "
                                   "--advertise HOST:PORT"));
}

}  // namespace

DataWorkerServer::DataWorkerServer(rpc::Reactor& reactor, rpc::Network& network, Offload& offload,
                                   Door door, DataWorkerOptions options) {
  verify_reachable(door.address, options.advertised);
  if (door.incarnation == 0) door.incarnation = random_number();
  rpc::Hello hello;
  hello.cluster = door.cluster;
  hello.role = rpc::Role::kDataWorker;
  hello.task = door.index;
  hello.incarnation = door.incarnation;
  hello.token = door.token;
  rpc::AcceptorOptions accept = acceptor_options(door, rpc::Role::kDataWorker, options.log);
  const std::string advertised =
      options.advertised.empty() ? "" : rpc::Address::parse(options.advertised).str();
  worker_ = std::make_shared<DataWorker>(reactor, network, offload, hello, std::move(options));
  auto serve = [weak = std::weak_ptr(worker_), next = std::make_shared<std::uint64_t>(1)](
                   const rpc::PeerInfo&, rpc::Connection& connection) -> capnp::Capability::Client {
    return wire::DataWorker::Client(kj::heap<DataWorkerService>(weak, connection, (*next)++));
  };
  acceptor_ = std::make_unique<rpc::Acceptor>(network, door.address, std::move(accept),
                                              std::vector<rpc::Endpoint>{{&reactor, serve}});
  worker_->begin(advertised.empty() ? address().str() : advertised);
}

DataWorkerServer::~DataWorkerServer() { stop(); }

const rpc::Address& DataWorkerServer::address() const { return acceptor_->address(); }

void DataWorkerServer::stop() {
  if (acceptor_) acceptor_->stop();
  worker_->end();
}

}  // namespace cairn::service
