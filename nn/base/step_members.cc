#include "nn/base/step_members.h"

namespace cairn::nn {
namespace {

thread_local std::int64_t members_now = 1;

}  // namespace

StepMembers::StepMembers(std::int64_t members) : before_(members_now) { members_now = members; }
StepMembers::~StepMembers() { members_now = before_; }

std::int64_t step_members() { return members_now; }

}  // namespace cairn::nn
