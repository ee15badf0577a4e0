#include "collective/base/collective.h"

namespace cairn {

Collective::~Collective() = default;

}  // namespace cairn
