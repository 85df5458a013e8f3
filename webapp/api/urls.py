"""Addresses of ``/api/v1``."""

from django.urls import path, re_path

from webapp.accounts.api import TokenDetail, TokenList
from webapp.analysis.api import WindowList
from webapp.api.documents import openapi
from webapp.api.problems import nothing_here
from webapp.audit.api import AuditExport, AuditList
from webapp.bursts.api import ClusterDetail, ClusterList, ClusterModel, ClusterPlan, ClusterRates
from webapp.jobs.api import JobDetail, JobList, JobSettingsView, OperatorList, WorkerList
from webapp.notifications.alert_rules_api import RuleDetail, RuleList, RulePreview
from webapp.notifications.alerts_api import (
    AlertAcknowledge,
    AlertDetail,
    AlertList,
    SilenceDetail,
    SilenceList,
)
from webapp.notifications.channels_api import ChannelDetail, ChannelList, ChannelLog, ChannelTest
from webapp.reconfigurations.api import (
    ProposalApprove,
    ProposalDetail,
    ProposalList,
    ProposalReject,
    ProposalRevert,
)
from webapp.reconfigurations.rules_api import CalibrationList, GlobalFreeze, JobFreeze, JobRules
from webapp.telemetry.api import ActivityList, PointList, RefusedList, SeriesList
from webapp.telemetry.ingest_api import Activities, RemoteWrite
from webapp.telemetry.sources_api import SourceDetail, SourceList, SourcePoll
from webapp.telemetry.uploads_api import UploadDetail, UploadList, UploadStore

urlpatterns = [
    path("openapi.yaml", openapi, name="openapi"),
    path("tokens", TokenList.as_view()),
    path("tokens/<int:token_id>", TokenDetail.as_view()),
    path("jobs", JobList.as_view()),
    path("jobs/<int:job_id>", JobDetail.as_view()),
    path("jobs/<int:job_id>/settings", JobSettingsView.as_view()),
    path("jobs/<int:job_id>/operators", OperatorList.as_view()),
    path("jobs/<int:job_id>/workers", WorkerList.as_view()),
    path("jobs/<int:job_id>/windows", WindowList.as_view()),
    path("clusters", ClusterList.as_view()),
    path("clusters/<int:cluster_id>", ClusterDetail.as_view()),
    path("clusters/<int:cluster_id>/model", ClusterModel.as_view()),
    path("clusters/<int:cluster_id>/plan", ClusterPlan.as_view()),
    path("clusters/<int:cluster_id>/rates", ClusterRates.as_view()),
    path("jobs/<int:job_id>/rules", JobRules.as_view()),
    path("jobs/<int:job_id>/freeze", JobFreeze.as_view()),
    path("freeze", GlobalFreeze.as_view()),
    path("proposals", ProposalList.as_view()),
    path("proposals/<int:proposal_id>", ProposalDetail.as_view()),
    path("proposals/<int:proposal_id>/approve", ProposalApprove.as_view()),
    path("proposals/<int:proposal_id>/reject", ProposalReject.as_view()),
    path("proposals/<int:proposal_id>/revert", ProposalRevert.as_view()),
    path("alert-rules", RuleList.as_view()),
    path("alert-rules/preview", RulePreview.as_view()),
    path("alert-rules/<int:rule_id>", RuleDetail.as_view()),
    path("alerts", AlertList.as_view()),
    path("alerts/<int:alert_id>", AlertDetail.as_view()),
    path("alerts/<int:alert_id>/acknowledge", AlertAcknowledge.as_view()),
    path("silences", SilenceList.as_view()),
    path("silences/<int:silence_id>", SilenceDetail.as_view()),
    path("channels", ChannelList.as_view()),
    path("channels/<int:channel_id>", ChannelDetail.as_view()),
    path("channels/<int:channel_id>/test", ChannelTest.as_view()),
    path("channels/<int:channel_id>/messages", ChannelLog.as_view()),
    path("calibration", CalibrationList.as_view()),
    path("audit", AuditList.as_view()),
    path("audit.csv", AuditExport.as_view()),
    path("sources", SourceList.as_view()),
    path("sources/<int:source_id>", SourceDetail.as_view()),
    path("sources/<int:source_id>/poll", SourcePoll.as_view()),
    path("uploads", UploadList.as_view()),
    path("uploads/<int:upload_id>", UploadDetail.as_view()),
    path("uploads/<int:upload_id>/store", UploadStore.as_view()),
    path("jobs/<int:job_id>/activities", ActivityList.as_view()),
    path("jobs/<int:job_id>/series", SeriesList.as_view()),
    path("jobs/<int:job_id>/series/<int:series_id>/points", PointList.as_view()),
    path("refused", RefusedList.as_view()),
    path("activities", Activities.as_view()),
    path("write", RemoteWrite.as_view()),
    re_path("", nothing_here),
]
