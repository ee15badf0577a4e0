#include "rpc/wire/step_wire.h"

namespace cairn::wire {

void write(Step::Builder out, const StepContext& step) {
  out.setSession(step.session);
  out.setSentLayout(step.sent_layout);
  out.setClosure(step.closure);
  out.setIncarnation(step.incarnation.number);
  out.setGlobalStep(step.global_step);
  out.setReplica(step.replica);
  out.setReplicas(step.replicas);
  out.setPushNumber(step.push_number);
  out.setRound(step.round);
  out.setEpoch(step.epoch.number);
}

StepContext read(Step::Reader in) {
  StepContext step;
  step.session = in.getSession();
  step.sent_layout = in.getSentLayout();
  step.closure = in.getClosure();
  step.incarnation = in.getIncarnation();
  step.global_step = in.getGlobalStep();
  step.replica = in.getReplica();
  step.replicas = in.getReplicas();
  step.push_number = in.getPushNumber();
  step.round = in.getRound();
  step.epoch = in.getEpoch();
  return step;
}

}  // namespace cairn::wire
