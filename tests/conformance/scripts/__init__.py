"""Everything that is asked of both servers; ``asking.py`` says what a script is."""

from __future__ import annotations

from tests.conformance.scripts import (
    admission,
    conversion,
    costs,
    definitions,
    deleting,
    oddities,
    openapi,
    owners,
    plugins,
    policies,
    protobuf,
    rbac,
    reading,
    recorded,
    serving,
    tokens,
    versions,
    writing,
)

SCRIPTS = [
    *writing.SCRIPTS,
    *reading.SCRIPTS,
    *deleting.SCRIPTS,
    *definitions.SCRIPTS,
    *versions.SCRIPTS,
    *costs.SCRIPTS,
    *owners.SCRIPTS,
    *oddities.SCRIPTS,
    *protobuf.SCRIPTS,
    *serving.SCRIPTS,
    *openapi.SCRIPTS,
    *tokens.SCRIPTS,
    *rbac.SCRIPTS,
    *admission.SCRIPTS,
    *plugins.SCRIPTS,
    *policies.SCRIPTS,
    *conversion.SCRIPTS,
    *recorded.SCRIPTS,
]
