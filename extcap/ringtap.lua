-- SPDX-License-Identifier: BSD-3-Clause
-- Shows what became of each packet of a recording with packet ids (`ringtap record --ids`): when it was sent, how
-- much later, and in which frame. Records of one packet have the same id. A packet is received before it is sent: of
-- received packets the later frames are known once the whole file has been read, in Wireshark after loading it, in
-- tshark with -2 and a filter (-Y ringtap): without one its first pass reads no fields.
--
-- Fates that a recording has (`ringtap record --fates`) are in blocks that Wireshark skips: a plugin never sees them.
-- `ringtap explain --annotate` makes comments of them, which are read here.

local ringtap = Proto("ringtap", "ringtap")

local fate_values = {[1] = "sent", [2] = "not sent in this file", [3] = "made by the application",
	[4] = "not received in this file", [5] = "not offered", [6] = "open at the end of the recording",
	[7] = "unknown; likely offered", [8] = "unknown"}
local SENT, NOT_SENT, MADE, UNKNOWN = 1, 2, 3, 4
local NOT_OFFERED = 5 -- the first of those that comments have

local fields = {
	fate = ProtoField.uint8("ringtap.fate", "Fate", base.DEC, fate_values),
	latency = ProtoField.relative_time("ringtap.latency", "Latency", "From receiving to sending this packet"),
	peer = ProtoField.framenum("ringtap.peer", "Peer frame", base.NONE, frametype.NONE, 0,
		"The packet as it was sent, or received"),
	times = ProtoField.uint32("ringtap.times", "Number of sendings", base.DEC),
	copy = ProtoField.uint32("ringtap.copy", "Copy", base.DEC, nil, nil,
		"0: the first sending of the packet, 1: the second, …"),
	noticed = ProtoField.relative_time("ringtap.noticed", "Noticed",
		"From receiving until it was noticed that the packet was not offered"),
	reason = ProtoField.string("ringtap.reason", "Reason", base.ASCII,
		"Why the application did not send the packet, as it said"),
}
ringtap.fields = {fields.fate, fields.latency, fields.peer, fields.times, fields.copy, fields.noticed,
	fields.reason}

local get_id = Field.new("frame.packet_id")
local get_direction = Field.new("frame.packet_flags_direction")
local get_description = Field.new("frame.interface_description")
local get_time = Field.new("frame.time_epoch")
local get_comment = Field.new("frame.comment")

local RECEIVED, SENDING = 1, 2 -- epb_flags

local applications, application_count -- ids are those of an application
local open                            -- by application and id: the packet that was received last
local frames                          -- by frame number: {packet, copy}; copy is nil for the received one
local any                             -- whether the file has ids
local noted                           -- whether there was a first pass that read fields

function ringtap.init()
	applications, application_count = {}, 0
	open, frames = {}, {}
	any, noted = false, false
end

-- Ports with a description of the user's name no application: they are taken for ports of the first one.
local function application()
	local description = get_description()
	local name = description and tostring(description.value):match(" of DPDK application ([^,]+)")

	if not name then
		return 0
	end
	if not applications[name] then
		applications[name] = application_count
		application_count = application_count + 1
	end
	return applications[name]
end

-- On the first pass that reads fields, in the order of the file.
local function note(frame, id, direction)
	local key = application() .. " " .. id
	local packet = open[key]

	if frames[frame] then
		return
	end
	if direction == RECEIVED then
		packet = {frame = frame, time = get_time().value, sent = {}}
		open[key] = packet
		frames[frame] = {packet = packet}
	elseif packet then
		packet.sent[#packet.sent + 1] = {frame = frame, latency = get_time().value - packet.time}
		frames[frame] = {packet = packet, copy = #packet.sent}
	end
end

-- The fate in the comments of this frame, its reason or nil, and until when it was not known; nil: there is none.
local function noted_fate()
	for _, comment in ipairs({get_comment()}) do
		local text = tostring(comment.value):match("^ringtap: (.*)")

		for fate = NOT_OFFERED, #fate_values do
			if text and text:sub(1, #fate_values[fate]) == fate_values[fate] then
				return fate, text:match("; reason: (.*)$"), text:match("noticed (%d+)%.(%d+) s")
			end
		end
	end
end

local function show_fate(tree, fate, reason, seconds, ns)
	tree:add(fields.fate, fate):set_generated()
	if reason then
		tree:add(fields.reason, reason):set_generated()
	end
	if seconds then
		tree:add(fields.noticed, NSTime.new(tonumber(seconds), tonumber(ns))):set_generated()
	end
	tree:append_text(": " .. fate_values[fate])
end

local function show_received(packet, tree, complete)
	local first = packet.sent[1]
	local fate, reason, seconds, ns = noted_fate()

	if fate then
		show_fate(tree, fate, reason, seconds, ns)
		if first then
			tree:add(fields.latency, first.latency):set_generated()
			tree:add(fields.times, #packet.sent):set_generated()
		end
	elseif first then
		tree:add(fields.fate, SENT):set_generated()
		tree:add(fields.latency, first.latency):set_generated()
		tree:add(fields.times, #packet.sent):set_generated()
		tree:append_text(": sent in frame " .. first.frame)
	elseif complete then
		tree:add(fields.fate, NOT_SENT):set_generated()
		tree:append_text(": not sent in this file")
	end
	for _, sending in ipairs(packet.sent) do
		tree:add(fields.peer, sending.frame):set_generated()
	end
end

local function show_sent(packet, copy, tree)
	tree:add(fields.fate, SENT):set_generated()
	tree:add(fields.latency, packet.sent[copy].latency):set_generated()
	tree:add(fields.peer, packet.frame):set_generated()
	tree:add(fields.copy, copy - 1):set_generated()
	tree:append_text(": received in frame " .. packet.frame)
end

function ringtap.dissector(buffer, pinfo, root)
	local id, direction = get_id(), get_direction()
	local way = direction and direction.value
	local about

	if not id and not any or way ~= RECEIVED and way ~= SENDING then
		return
	end
	any = true
	noted = noted or not pinfo.visited
	if id and not (pinfo.visited and noted) then
		note(pinfo.number, tostring(id.value), way)
	end
	about = frames[pinfo.number]
	if about and about.copy then
		show_sent(about.packet, about.copy, root:add(ringtap))
	elseif about then
		show_received(about.packet, root:add(ringtap), pinfo.visited and noted)
	elseif way == SENDING then
		root:add(ringtap):add(fields.fate, id and UNKNOWN or MADE):set_generated()
	end
end

register_postdissector(ringtap)
