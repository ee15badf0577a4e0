#include "collective/network/peer_service.h"

#include "core/graph/wire/wire.h"
#include "rpc/loop/error_wire.h"

namespace cairn {
namespace {

class MemberService final : public wire::Member::Server {
 public:
  MemberService(std::shared_ptr<PeerDoor> door, int from, rpc::Connection& connection)
      : door_(std::move(door)), from_(from), connection_(connection) {}
  ~MemberService() noexcept(false) { door_->closed(from_, connection_); }

 private:
  kj::Promise<void> form(FormContext context) override {
    return connection_.guard(formed(context));
  }
  kj::Promise<void> put(PutContext context) override { return connection_.guard(used(context)); }

  kj::Promise<void> ping(PingContext context) override {
    return rpc::at_once([&] { context.getResults().setCalls(door_->host().own_calls()); });
  }

  kj::Promise<void> abort(AbortContext context) override {
    return rpc::at_once([&] {
      const auto params = context.getParams();
      door_->host().told(from_, connection_, rpc::from_error_text(params.getError().cStr()),
                         params.getLeft());
    });
  }

  rpc::Task<void> formed(FormContext context) {
    if (from_ != 0) throw PermissionDeniedError("only rank 0 announces a group");
    const auto params = context.getParams();
    std::vector<ProcessIncarnation> incarnations;
    for (const std::uint64_t each : params.getIncarnations()) incarnations.emplace_back(each);
    auto joined = door_->guard(
        door_->host().join(params.getGeneration(), params.getAgreed(), std::move(incarnations)));
    co_await kj::mv(joined);
  }

  // The message lives as long as the call, which is answered when its values were used.
  rpc::Task<void> used(PutContext context) {
    const auto in = context.getParams().getParcel();
    auto delivered = door_->guard(
        door_->host().deliver(from_, connection_, in.getGeneration(), read_parcel(in)));
    co_await kj::mv(delivered);
  }

  const std::shared_ptr<PeerDoor> door_;
  const int from_;
  rpc::Connection& connection_;
};

}  // namespace

PeerHost& PeerDoor::host() const {
  if (host_ == nullptr) throw UnavailableError("this member has left the group");
  return *host_;
}

void PeerDoor::close() {
  host_ = nullptr;
  calls_.cancel(rpc::to_kj(Code::kUnavailable, "this member has left the group"));
}

capnp::Capability::Client serve_peer(std::shared_ptr<PeerDoor> door, int from,
                                     rpc::Connection& connection) {
  return kj::heap<MemberService>(std::move(door), from, connection);
}

void write_parcel(wire::Parcel::Builder out, std::uint64_t generation, const Parcel& parcel) {
  out.setGeneration(generation);
  out.setCall(parcel.call);
  out.setPart(parcel.part);
  out.setStep(parcel.step);
  out.setSignature(parcel.signature);
  if (!parcel.asked.empty()) out.setAsked(parcel.asked);
  if (parcel.strings.defined())
    wire::write(out.initValue(), parcel.strings);
  else if (parcel.type)
    wire::write(out.initValue().initType(), *parcel.type);
}

Parcel read_parcel(wire::Parcel::Reader in) {
  Parcel parcel;
  parcel.call = in.getCall();
  parcel.part = in.getPart();
  parcel.step = in.getStep();
  parcel.signature = in.getSignature();
  parcel.asked = in.getAsked().cStr();
  if (in.hasValue()) {
    parcel.type = wire::read(in.getValue().getType());
    if (parcel.type->dtype == DType::kString) parcel.strings = wire::read(in.getValue());
    if (!parcel.type->shape.known())
      throw InvalidArgumentError(str("a tensor of type ", parcel.type->to_string(), " was sent"));
  }
  parcel.data = in.getData();
  return parcel;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace cairn
