"""The messages of Prometheus remote write, as far as they are read, from the published specifications.

Version 1 is ``prometheus.WriteRequest``, version 2 ``io.prometheus.write.v2.Request``. Series of
version 1, labels, samples and histograms are declared as bytes: a request has thousands, most of which need not
become objects. Fields that are not declared (exemplars, metadata of version 1, buckets of histograms) are passed
over.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_TYPES = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}
_MESSAGES = {
    "WriteRequest": "repeated bytes timeseries = 1",
    "SeriesV1": "repeated bytes labels = 1; repeated bytes samples = 2; repeated bytes histograms = 4",
    "Request": "repeated bytes symbols = 4; repeated SeriesV2 timeseries = 5",
    "RequestCount": "repeated bytes timeseries = 5",
    "SeriesV2": (
        "repeated uint32 labels_refs = 1; repeated bytes samples = 2; repeated bytes histograms = 3;"
        "Metadata metadata = 5; int64 created_timestamp = 6"
    ),
    "Label": "string name = 1; string value = 2",
    "Sample": "double value = 1; int64 timestamp = 2; int64 start_timestamp = 3",
    "Histogram": "uint64 count_int = 1; double count_float = 2; double sum = 3; int64 timestamp = 15",
    "Metadata": "int32 type = 1",
}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="weir/remote_write.proto", package="weir.remote_write", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for declaration in fields.split(";"):
            *repeated, kind, field, _, number = declaration.split()
            label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            added = message.field.add(name=field, number=int(number), label=label)
            if kind in _TYPES:
                added.type = _TYPES[kind]
            else:
                added.type, added.type_name = (
                    FieldDescriptorProto.TYPE_MESSAGE,
                    f".{file.package}.{kind}",
                )
    return file


def _classes() -> dict[str, Any]:
    pool = DescriptorPool()
    pool.Add(_file())
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"weir.remote_write.{name}")) for name in _MESSAGES
    }


_CLASSES = _classes()
WriteRequest: Any = _CLASSES["WriteRequest"]
SeriesV1: Any = _CLASSES["SeriesV1"]
Request: Any = _CLASSES["Request"]
RequestCount: Any = _CLASSES["RequestCount"]
Label: Any = _CLASSES["Label"]
Sample: Any = _CLASSES["Sample"]
Histogram: Any = _CLASSES["Histogram"]
