#include "collective/peer_service.h"

#include "core/graph/wire.h"
#include "rpc/error_wire.h"

namespace cairn {
namespace {

class MemberService final : public wire::Member::Server {
 public:
  MemberService(PeerHost& host, int from, rpc::Connection& connection)
      : host_(host), from_(from), connection_(connection) {}

 private:
  kj::Promise<void> form(FormContext context) override {
    return connection_.guard(formed(context));
  }
  kj::Promise<void> put(PutContext context) override { return connection_.guard(used(context)); }

  kj::Promise<void> ping(PingContext context) override {
    context.getResults().setCalls(host_.own_calls());
    return kj::READY_NOW;
  }

  kj::Promise<void> abort(AbortContext context) override {
    const auto params = context.getParams();
    host_.told(from_, connection_, rpc::from_error_text(params.getError().cStr()),
               params.getLeft());
    return kj::READY_NOW;
  }

  rpc::Task<void> formed(FormContext context) {
    if (from_ != 0) throw PermissionDeniedError("only rank 0 announces a group");
    const auto params = context.getParams();
    std::vector<ProcessIncarnation> incarnations;
    for (const std::uint64_t each : params.getIncarnations()) incarnations.emplace_back(each);
    co_await host_.join(params.getGeneration(), params.getAgreed(), std::move(incarnations));
  }

  // The message lives as long as the call, which is answered when its values were used.
  rpc::Task<void> used(PutContext context) {
    const auto in = context.getParams().getParcel();
    co_await host_.deliver(from_, connection_, in.getGeneration(), read_parcel(in));
  }

  PeerHost& host_;
  const int from_;
  rpc::Connection& connection_;
};

}  // namespace

capnp::Capability::Client serve_peer(PeerHost& host, int from, rpc::Connection& connection) {
  return kj::heap<MemberService>(host, from, connection);
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
